DROP TABLE ordid_flushes;
