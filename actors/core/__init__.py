"""What every wing uses: values, queries, the runtime, records, contents, formulas, scripts."""
