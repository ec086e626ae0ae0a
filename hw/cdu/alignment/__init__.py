"""Values, of which a beat holds eight of one row, to blocks of eight by eight and back; what is known of a block."""
