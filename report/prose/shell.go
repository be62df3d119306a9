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
	return quoted(path)
}

// ShellFlag is an option with its value as a shell reads it back.
func ShellFlag(name, value string) string { return "--" + name + "=" + quoted(value) }

// quoted is a word in quotes where it needs them.
func quoted(word string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
