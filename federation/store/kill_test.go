package store

func writeUntilKilled(string) {}
