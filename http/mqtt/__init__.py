"""MQTT for devices and applications: packets, sessions on connections, and what clients publish and subscribe to."""
