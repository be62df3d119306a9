package prose

import "strings"

// plain are the characters that no shell reads in a way of its own.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+:,@%"

// ShellWord is a path as a shell reads it back: in quotes where it needs them, and with
// ./ before a dash, which commands would take for an option.
func ShellWord(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	if path != "" && strings.Trim(path, plain) == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
