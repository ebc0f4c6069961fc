"""The device link: WebSocket connections that devices keep (docs/reference/device-link.md)."""
