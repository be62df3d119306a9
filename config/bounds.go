package config

import (
	"bytes"
	"fmt"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// MaxBytes is the largest YAML text that is read.
const MaxBytes = 1 << 20

// The bounds of a YAML text. A file may come from somebody hostile (a plan comes from
// the server), and the parser's memory grows with the square of some of these: 200,000
// brackets within one another took it 23 GB. All of them are far above what any file
// of this program needs.
const (
	maxMarks      = 100_000 // characters that can begin or end a token: a token takes some 500 bytes
	maxTabs       = 1000    // tabs and < make the lexer look ahead, to the end of the line
	maxEmptyLines = 16      // in a row: the lexer takes them off the end of a block of text one by one, and copies the block every time
	maxDepth      = 16      // blocks, lists and brackets within one another
	maxKeyBytes   = 128     // every value remembers the keys above it
	maxBlockKeys  = 1000    // of one block: the parser's work grows with their square
	maxReferences = 16      // anchors, aliases and tags: a few aliases can stand for a billion values
	maxDocuments  = 16      // separators of documents
)

// Bounded says whether a YAML text is small enough to be parsed at all: it costs time
// and memory in proportion to the text. Nothing may be parsed without it.
func Bounded(text []byte) error {
	_, err := tokens(text)
	return err
}

// tokens splits a YAML text as the parser does, so that both see the same brackets, and
// refuses what the parser could not take.
func tokens(text []byte) (token.Tokens, error) {
	if err := boundBytes(text); err != nil {
		return nil, err
	}
	all := lexer.Tokenize(string(text))
	b := bounds{}
	for i, t := range all {
		if err := b.add(t, i+1 < len(all) && all[i+1].Type == token.MappingValueType); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// boundBytes bounds the tokens that a text can have, before there are any.
func boundBytes(text []byte) error {
	if len(text) > MaxBytes {
		return Faults{{Line: 1, Column: 1, Message: fmt.Sprintf("the file is larger than %d bytes", MaxBytes)}}
	}
	marks, tabs, breaks := 0, 0, 0
	for i, c := range text {
		switch c {
		case '\n', '\r':
			breaks++
		case ' ', '\t':
		default:
			breaks = 0
		}
		switch c {
		case '\n', '\r', ',', ':', '[', ']', '{', '}', '?', '&', '*', '!', '|', '>', '\'', '"', '#', '%', '@', '`':
			marks++
		case '-': // begins an item if nothing stands right behind it, and a document if two more do
			if i+1 == len(text) || bytes.IndexByte([]byte(" \t\r\n-"), text[i+1]) >= 0 {
				marks++
			}
		case '\t', '<':
			tabs++
		case '.':
			if bytes.HasPrefix(text[i:], []byte("...")) {
				marks++
			}
		}
		what, most := "", 0
		switch {
		case marks > maxMarks:
			what, most = "lines, brackets, commas and other marks", maxMarks
		case tabs > maxTabs:
			what, most = "tabs or <", maxTabs
		case breaks > 2*maxEmptyLines+2: // a return and a line feed may end one line
			what, most = "empty lines in a row", maxEmptyLines
		}
		if what != "" {
			line := 1 + bytes.Count(text[:i], []byte("\n"))
			column := i - bytes.LastIndexByte(text[:i], '\n')
			return Faults{{Line: line, Column: column, Message: fmt.Sprintf("more than %d %s: the file is not read", most, what)}}
		}
	}
	return nil
}

// bounds follows a text token by token.
type bounds struct {
	flow       int     // open brackets
	flowKeys   int     // within them, since the last bracket or comma
	blocks     []block // outside brackets, by rising column
	references int
	documents  int
}

// block is a block of keys, or a list, that begins at a column.
type block struct {
	column int
	keys   int
}

// add takes the next token; key says that it is the key of a value.
func (b *bounds) add(t *token.Token, key bool) error {
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		b.flow, b.flowKeys = b.flow+1, 0
	case token.SequenceEndType, token.MappingEndType:
		b.flow, b.flowKeys = max(0, b.flow-1), 0
	case token.CollectEntryType:
		b.flowKeys = 0
	case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType:
		b.references++
	case token.DocumentHeaderType, token.DocumentEndType, token.DirectiveType:
		b.documents++
	case token.MappingKeyType:
		return refused(t, "keys that begin with ? are not supported: write the key before a colon")
	}
	if b.flow == 0 && (key || t.Type == token.SequenceEntryType) {
		b.enter(t.Position.Column, key)
	} else if key {
		b.flowKeys++
	}
	switch {
	case b.flow+len(b.blocks) > maxDepth:
		return refused(t, "blocks, lists and brackets stand more than %d deep in one another", maxDepth)
	case key && len(t.Value) > maxKeyBytes:
		return refused(t, "a key of %d characters; allowed: %d", len(t.Value), maxKeyBytes)
	case b.flowKeys > maxBlockKeys || len(b.blocks) > 0 && b.blocks[len(b.blocks)-1].keys > maxBlockKeys:
		return refused(t, "a block of more than %d keys", maxBlockKeys)
	case b.references > maxReferences:
		return refused(t, "more than %d anchors, aliases and tags: write the values out", maxReferences)
	case b.documents > maxDocuments:
		return refused(t, "more than %d separators of documents", maxDocuments)
	}
	return nil
}

// enter notes a key or an item at a column: what stood further to the right has ended.
func (b *bounds) enter(column int, key bool) {
	for len(b.blocks) > 0 && b.blocks[len(b.blocks)-1].column > column {
		b.blocks = b.blocks[:len(b.blocks)-1]
	}
	if len(b.blocks) == 0 || b.blocks[len(b.blocks)-1].column < column {
		b.blocks = append(b.blocks, block{column: column})
	}
	if key {
		b.blocks[len(b.blocks)-1].keys++
	}
}

func refused(t *token.Token, format string, args ...any) error {
	return Faults{{Line: t.Position.Line, Column: t.Position.Column, Message: fmt.Sprintf(format, args...)}}
}
