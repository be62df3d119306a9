package data

import (
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// newsText is a text of the news, as words with a space between, and its class, from 0.
type newsText struct {
	words string
	end   string // words of the last column alone: the text without its title
	class int
}

// newsParts are the texts to train on and to test with.
type newsParts struct {
	train, test []newsText
	report      LoadReport
}

// Why texts are left out.
const (
	leftInTest = "text that stands in the test part, too"
	leftTwice  = "text that is there twice"
)

// leastShared is how many words a text must have that is found at the end of another:
// fewer could be there by chance.
const leastShared = 5

// readNews reads AG News: the whole test part, and two samples of the training part, one
// with the titles in front of the texts and one without. Texts of the test part are left
// out of the samples, and so is what is there twice: of an article that both have, the one
// with its title stays.
func readNews(folder string) (*newsParts, error) {
	p := &newsParts{report: LoadReport{Source: "agnews", Notes: []string{"the samples hold 12,999 of the 120,000 texts to train on, 8,000 of them without a title"}}}
	var titled, bare []newsText
	for _, part := range []struct {
		file    string
		columns []string
		into    *[]newsText
	}{
		{"ag_news_test.csv.gz", []string{"title", "description"}, &p.test},
		{"ag_news_train_sample5000_titled.csv.gz", []string{"title_and_description"}, &titled},
		{"ag_news_train_sample8000.csv.gz", []string{"description"}, &bare},
	} {
		texts, err := readFile(filepath.Join(folder, part.file), func(name string, r io.Reader) (*[]newsText, error) {
			return readTexts(name, r, part.columns)
		})
		if err != nil {
			return nil, err
		}
		*part.into = *texts
		p.report.Rows += len(*texts)
	}
	tested := map[string]bool{}
	for _, t := range p.test {
		tested[apart(t.end)] = true
	}
	seen := map[string]bool{} // whole texts, and those that stand at the end of one
	for _, t := range bare {
		seen[apart(t.words)] = false
	}
	p.keep(titled, tested, seen)
	p.keep(bare, tested, seen)
	return p, nil
}

// keep adds texts to those to train on, unless they or their ends were seen before. Of the
// ends, those count that seen knows.
func (p *newsParts) keep(texts []newsText, tested, seen map[string]bool) {
	for _, t := range texts {
		words := apart(t.words)
		inTest, twice := false, seen[words]
		seen[words] = true
		for end := range ends(words) {
			inTest = inTest || tested[end]
			if _, known := seen[end]; known {
				seen[end] = true
			}
		}
		switch {
		case inTest:
			p.report.leaveOutMany(leftInTest, 1)
		case twice:
			p.report.leaveOutMany(leftTwice, 1)
		default:
			p.train = append(p.train, t)
		}
	}
}

// ends are a text, and what is left of it when one word after another is taken away.
func ends(words string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for left := strings.Count(words, " ") + 1; yield(words) && left > leastShared; left-- {
			_, words, _ = strings.Cut(words, " ")
		}
	}
}

// readTexts reads a table of classes from 1 to 4 and texts, which may lie in several
// columns.
func readTexts(name string, r io.Reader, columns []string) (*[]newsText, error) {
	t, at, err := openTable(name, r, append([]string{"label"}, columns...)...)
	if err != nil {
		return nil, err
	}
	var out []newsText
	for row, err := range t.rows() {
		if err != nil {
			return nil, err
		}
		class := strings.Index("1234", row.cells[at[0]])
		if len(row.cells[at[0]]) != 1 || class < 0 {
			return nil, t.faultf("label", "is %s; allowed: 1 to %d", shorten(row.cells[at[0]]), newsClasses)
		}
		var parts []string
		for _, j := range at[1:] {
			parts = append(parts, wordsOf(row.cells[j]))
		}
		out = append(out, newsText{strings.Join(parts, " "), parts[len(parts)-1], class})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no texts", name)
	}
	return &out, nil
}

// markup is what is left of HTML in the texts: tags, and characters by name or number.
var markup = regexp.MustCompile(`(?i)&lt;.*?&gt;|&?\b(lt|gt|quot|amp|nbsp|hellip);|&?#[0-9]+;`)

// wordsOf are a text's words in lower case, with a space between: letters and digits, and
// hyphens between them.
func wordsOf(text string) string {
	if strings.Contains(text, ";") { // most have no markup
		text = markup.ReplaceAllString(text, " ")
	}
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	kept := words[:0]
	for _, word := range words {
		if word = strings.Trim(word, "-"); word != "" {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ")
}

// apart are words without hyphens, for texts to be compared by.
func apart(words string) string { return strings.ReplaceAll(words, "-", " ") }

// knownWords are the places of words that have one, in their order. A word with hyphens
// that has none is taken apart.
func knownWords(words string, place map[string]int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for word := range strings.SplitSeq(words, " ") {
			if at, known := place[word]; known {
				if !yield(at) {
					return
				}
				continue
			}
			for part := range strings.SplitSeq(word, "-") {
				if at, known := place[part]; known && !yield(at) {
					return
				}
			}
		}
	}
}
