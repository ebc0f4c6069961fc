"""The device link: WebSocket connections that devices keep (docs/device-link.md)."""
