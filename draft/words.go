package draft

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// wordsOf are the words of a column's name, in lower case: patientId is patient, id.
func wordsOf(name string) []string {
	var parted strings.Builder
	var before rune
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			parted.WriteByte(' ')
		}
		parted.WriteRune(unicode.ToLower(r))
		before = r
	}
	return strings.FieldsFunc(parted.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func hasWord(name string, words []string) bool {
	return slices.ContainsFunc(wordsOf(name), func(w string) bool { return slices.Contains(words, w) })
}

// identifiers are words in the names of columns that tell persons or records apart.
var identifiers = []string{"id", "ids", "uid", "uuid", "guid", "key", "mrn", "ssn", "nhs", "nr", "identifier", "kennung", "nummer", "schluessel", "schlüssel", "identifiant", "numero", "número"}

// codes are words in the names of columns whose numbers are no quantities.
var codes = []string{"code", "zip", "zipcode", "postcode", "plz", "icd", "icd10", "postleitzahl"}

// sensitives are words in the names of columns that people may be treated unequally by:
// in English, German, French, Spanish, Italian, Portuguese and Dutch.
var sensitives = []string{
	"sex", "gender", "geschlecht", "sexe", "genre", "sexo", "género", "genero", "sesso", "genere", "gênero", "geslacht",
	"race", "ethnicity", "ethnic", "ethnie", "ethnizität", "ethnizitaet", "rasse", "raza", "etnia", "razza", "raça", "raca", "etniciteit",
	"religion", "religión", "religione", "religião", "religiao", "religie", "konfession",
	"disability", "disabled", "behinderung", "handicap", "discapacidad", "disabilità", "disabilita", "deficiência", "deficiencia", "handicapped",
	"nationality", "nationalität", "nationalitaet", "nationalité", "nationalite", "nacionalidad", "nazionalità", "nacionalidade", "nationaliteit",
	"agegroup", "altersgruppe", "altersklasse", "leeftijdsgroep",
}

// agePairs are two words that together name a group of ages.
var agePairs = [][2]string{{"age", "group"}, {"age", "band"}, {"age", "class"}, {"groupe", "age"}, {"tranche", "age"}, {"grupo", "edad"}, {"fascia", "età"}, {"faixa", "etária"}}

func isSensitive(name string) bool {
	if hasWord(name, sensitives) {
		return true
	}
	words := wordsOf(name)
	return slices.ContainsFunc(agePairs, func(p [2]string) bool { return slices.Contains(words, p[0]) && slices.Contains(words, p[1]) })
}

// yesNo are how no and yes are written; the first ones need no list in a run file.
var (
	plainYesNo = [][2]string{{"no", "yes"}, {"n", "y"}, {"false", "true"}, {"f", "t"}, {"0", "1"}, {"0.0", "1.0"}}
	otherYesNo = [][2]string{{"nein", "ja"}, {"nee", "ja"}, {"non", "oui"}, {"no", "sí"}, {"no", "si"}, {"no", "sì"}, {"não", "sim"}, {"nao", "sim"},
		{"negative", "positive"}, {"negativ", "positiv"}, {"absent", "present"}, {"off", "on"}, {"-1", "1"}, {"-", "+"}}
)

// plainWord is 0 for a no and 1 for a yes as every run file knows them.
func plainWord(v string) (int, bool) {
	for _, pair := range plainYesNo {
		for i, w := range pair {
			if v == w || v == strings.ToUpper(w) || v == strings.ToUpper(w[:1])+w[1:] {
				return i, true
			}
		}
	}
	return 0, false
}

// plainWords says that the values are such, in any number of spellings, and that both
// are there.
func plainWords(values []string) bool {
	var found [2]bool
	for _, v := range values {
		i, known := plainWord(v)
		if !known {
			return false
		}
		found[i] = true
	}
	return found[0] && found[1]
}

// otherWords are two values that mean no and yes, in that order.
func otherWords(values []string) ([]string, bool) {
	if len(values) != 2 {
		return nil, false
	}
	for _, pair := range otherYesNo {
		for i := range 2 {
			if strings.ToLower(values[i]) == pair[0] && strings.ToLower(values[1-i]) == pair[1] {
				return []string{values[i], values[1-i]}, true
			}
		}
	}
	return nil, false
}

// isSplit says that the values part a table into rows to train and rows to test with.
func isSplit(values []string) bool {
	if len(values) < 2 || len(values) > 3 {
		return false
	}
	for _, v := range values {
		switch strings.ToLower(v) {
		case "train", "training", "test", "testing", "valid", "validation", "dev":
		default:
			return false
		}
	}
	return true
}

// suggestion asks for the name that takes the fewest changed letters, if that is near.
func suggestion(name string, names []string) string {
	best, least := "", len([]rune(name))/2+1
	for _, n := range names {
		if d := changes(strings.ToLower(name), strings.ToLower(n)); d < least {
			best, least = n, d
		}
	}
	if best == "" {
		return "."
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// changes is the number of letters to add, drop or replace (Levenshtein 1966).
func changes(from, to string) int {
	a, b := []rune(from), []rune(to)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
