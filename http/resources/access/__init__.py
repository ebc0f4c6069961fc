"""Routes of certificates, with which devices log in."""
