package draft

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// What names may have: a run's in config, a participant's in federation/identity.
const (
	mostRunName     = 64
	mostParticipant = 63
)

// runName is the target's name as a run may be called.
func runName(target string) string { return plainName(target, "run", mostRunName) }

// participants are the clients' names as certificates take them, in small letters, each
// another one.
func participants(clients []Client) []string {
	var names []string
	for _, c := range clients {
		plain := plainName(strings.ToLower(c.Name), "client", mostParticipant)
		name := plain
		for i := 2; slices.Contains(names, name); i++ {
			tail := fmt.Sprintf("-%d", i)
			name = plain[:min(len(plain), mostParticipant-len(tail))] + tail
		}
		names = append(names, name)
	}
	return names
}

// plainName is a text in letters and digits of ASCII, dots, dashes and underscores, a
// letter or digit first, and otherwise, if that leaves nothing. What has no such letter
// becomes a dash.
func plainName(text, otherwise string, most int) string {
	var b strings.Builder
	for _, r := range text {
		switch plain, known := latin[unicode.ToLower(r)]; {
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '.' || r == '_' || r == '-':
			b.WriteRune(r)
		case known && unicode.IsUpper(r):
			b.WriteString(strings.ToUpper(plain[:1]) + plain[1:])
		case known:
			b.WriteString(plain)
		case unicode.Is(unicode.Mn, r): // an accent behind its letter, as file names on a Mac have it
		default:
			b.WriteByte('-')
		}
	}
	name := strings.TrimLeft(b.String(), "._-")
	if name == "" {
		return otherwise
	}
	return name[:min(len(name), most)]
}

// latin are letters of languages with Latin ones as ASCII writes them.
var latin = func() map[rune]string {
	m := map[rune]string{}
	for plain, letters := range map[string]string{
		"a": "àáâãåāăą", "ae": "äæ", "c": "çćĉċč", "d": "ďđð", "e": "èéêëēĕėęě", "g": "ĝğġģ", "h": "ĥħ", "i": "ìíîïĩīĭįı", "j": "ĵ", "k": "ķ",
		"l": "ĺļľŀł", "n": "ñńņňŋ", "o": "òóôõøōŏő", "oe": "öœ", "r": "ŕŗř", "s": "śŝşšș", "ss": "ß", "t": "ţťŧț", "th": "þ",
		"u": "ùúûũūŭůűų", "ue": "ü", "w": "ŵ", "y": "ýÿŷ", "z": "źżž",
	} {
		for _, r := range letters {
			m[r] = plain
		}
	}
	return m
}()
