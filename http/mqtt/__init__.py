"""MQTT: its packets for 3.1, 3.1.1 and 5.0, read from bytes and written to bytes."""
