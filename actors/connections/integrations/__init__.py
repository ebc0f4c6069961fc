"""Connections of integrations: MQTT brokers and WebSocket servers, and the workflows that their messages trigger."""
