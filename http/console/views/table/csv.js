// Reads CSV (RFC 4180) piece by piece, so that files of any size can be read: quoted fields, doubled quotation marks,
// line breaks in fields, lines that end with LF, CR LF or CR.

export class CsvError extends Error {}

const FIELD_CHARS_MAX = 1_000_000; // far more than a cell of a table holds

export class CsvReader {
  #separator;
  #field = "";
  #quoted = false; // the field has begun with a quotation mark
  #inside = false; // inside of quotation marks
  #afterQuote = false; // after a quotation mark inside: the end, or the first of two
  #afterReturn = false;
  #fields = [];
  #line = 1;
  #begun = 1;
  #quotedAt = 1; // the line on which the quotation mark of the field stands

  constructor(separator = ",") {
    this.#separator = separator;
  }

  // The records that are complete: {line, fields}. A field is a text, or null if nothing stands there; "" in quotation
  // marks is a text. Lines with nothing are left out.
  push(text) {
    const records = [];
    for (const char of text) this.#take(char, records);
    if (this.#inside && this.#field.length > FIELD_CHARS_MAX) throw this.#unclosed(`not closed within ${FIELD_CHARS_MAX.toLocaleString()} characters`);
    return records;
  }

  // What is wrong if the text ends where it was read to; null if it may end there.
  get fault() {
    return this.#inside && !this.#afterQuote ? this.#unclosed("never closed") : null;
  }

  #unclosed(how) {
    return new CsvError(`Line ${this.#quotedAt.toLocaleString()} of the file: a field begins with a quotation mark that is ${how}.`);
  }

  // The last record, if its line has no end.
  end() {
    if (this.fault) throw this.fault;
    const records = [];
    if (this.#field || this.#quoted || this.#fields.length) this.#endRecord(records);
    return records;
  }

  #take(char, records) {
    if (this.#afterReturn) {
      this.#afterReturn = false;
      if (char === "\n") return;
    }
    if (this.#inside) {
      if (this.#afterQuote) {
        this.#afterQuote = false;
        if (char === '"') {
          this.#field += char;
          return;
        }
        this.#inside = false;
      } else if (char === '"') {
        this.#afterQuote = true;
        return;
      } else {
        if (char === "\n") this.#line += 1;
        this.#field += char;
        return;
      }
    }
    if (char === this.#separator) this.#endField();
    else if (char === "\n" || char === "\r") {
      this.#afterReturn = char === "\r";
      this.#line += 1;
      this.#endRecord(records);
    } else if (char === '"' && this.#field === "" && !this.#quoted) {
      this.#quoted = this.#inside = true;
      this.#quotedAt = this.#line;
    } else this.#field += char;
  }

  #endField() {
    this.#fields.push(this.#field === "" && !this.#quoted ? null : this.#field);
    this.#field = "";
    this.#quoted = this.#inside = this.#afterQuote = false;
  }

  #endRecord(records) {
    this.#endField();
    if (this.#fields.length > 1 || this.#fields[0] !== null) records.push({ line: this.#begun, fields: this.#fields });
    this.#fields = [];
    this.#begun = this.#line;
  }
}

// The separator of a file: of comma, semicolon and tab the one that is most often in its first line.
export function separatorOf(text) {
  const line = text.replace(/"[^"]*"/g, "").split(/[\r\n]/, 1)[0];
  const often = (each) => line.split(each).length;
  return [",", ";", "\t"].reduce((best, each) => (often(each) > often(best) ? each : best));
}

// The records of a file, a batch for each piece that is read: {records, bytes}, `bytes` being those that were read.
export async function* readCsv(file, { separator, encoding }) {
  const decoder = new TextDecoder(encoding, { fatal: true });
  const reader = new CsvReader(separator);
  const pieces = file.stream().getReader();
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await pieces.read();
      if (value) bytes += value.length;
      yield { records: reader.push(decode(decoder, value, done, encoding)), bytes };
      if (done) break;
    }
    yield { records: reader.end(), bytes };
  } finally {
    pieces.cancel().catch(() => {});
  }
}

function decode(decoder, value, done, encoding) {
  try {
    return done ? decoder.decode() : decoder.decode(value, { stream: true });
  } catch {
    throw new CsvError(`The file is not text in ${encoding}. Choose its encoding, or save it as UTF-8.`);
  }
}
