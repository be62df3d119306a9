package source

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// isText says that bytes are text in UTF-8. A zero byte is none: that is how UTF-16
// without a mark shows.
func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// notText says which byte of a text shows that it is none in UTF-8; empty: it is text.
func notText(text string) string {
	for at, left := 0, text; left != ""; {
		r, n := utf8.DecodeRuneInString(left)
		if r == utf8.RuneError && n == 1 || r == 0 {
			return fmt.Sprintf("byte %d is %#x, so it is no text in UTF-8", at, left[0])
		}
		at, left = at+n, left[n:]
	}
	return ""
}
