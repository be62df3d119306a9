package draft

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/bytepair"
	"github.com/coterie-fl/coterie/data/source"
)

// mergesFile is the drafted vocabulary beside the run file.
const mergesFile = "merges.bpe"

// What suits a first run on text: a small vocabulary, found in at most so many bytes, and
// rows of so many words at most.
const (
	mostVocabulary = 512
	mostLooked     = 1 << 20
	mostContext    = 64
	leastContext   = 8
	leastRows      = 20 // of every client
)

const textHead = `# A first run on the text of %s, drafted by coterie init.
#
# Careful: ` + ForYou + `.
# Lines marked "not public: replace or pay" hold values that were read off the data:
# whoever sees this file learns something from them that no proof covers, and the run's
# privacy claim is "heuristic" as long as data.not_public lists any of them. The vocabulary,
# ` + mergesFile + `, was found in the text: its most frequent words stand in the file, and whoever
# gets the model gets it too. Find another in public text (coterie data vocabulary), or
# take GPT-2's by deleting the line merges; then delete data.merges from data.not_public.
`

const textModel = `model: {kind: transformer, blocks: 1, width: 32, heads: 2}   # GPT-2's build, small
algorithm:
  kind: %s
  mode: sound
  rounds: %d
  local:
`

// holdsText says that a path is a file of text, or a folder with such files and nothing
// that could be a table.
func holdsText(path string) (bool, error) {
	isText := func(name string) bool { return strings.HasSuffix(name, ".txt") || strings.HasSuffix(name, ".txt.gz") }
	info, err := os.Stat(path)
	if err != nil {
		return false, nil // a pattern, or what the reader will complain of
	}
	if !info.IsDir() {
		return isText(path), nil
	}
	inside, err := os.ReadDir(path)
	if err != nil {
		return false, fmt.Errorf("look at the data: %w", err)
	}
	texts := 0
	for _, f := range inside {
		switch name := f.Name(); {
		case f.IsDir() || name[0] == '.':
		case isText(name):
			texts++
		default:
			return false, nil
		}
	}
	return texts > 0, nil
}

// newText looks at files of text, a client each.
func newText(ctx context.Context, r Request) (*Draft, error) {
	if r.Client != "" || r.Target != "" {
		return nil, fmt.Errorf("%w: %s is text, a file a client, whose next words are foreseen: it takes neither --client nor --target", ErrRequest, r.Path)
	}
	files, err := source.TextFiles(r.Path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	words, err := vocabularyOf(ctx, files)
	if err != nil {
		return nil, err
	}
	d := &Draft{Kind: "text", Task: data.TaskWords, Target: Column{Name: "next word"}, Columns: []Column{}}
	counts := make([]int, len(files))
	for i, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows, err := source.TextRows(words, 1, f.Path)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRequest, err)
		}
		counts[i] = len(rows.Y)
	}
	context := mostContext
	for context > leastContext && slices.Min(counts)/context < leastRows {
		context /= 2
	}
	for i, f := range files {
		n := counts[i] / context
		if n < leastRows {
			return nil, fmt.Errorf("%w: %s has %d words, which are %d rows of %d; a client needs %d rows: add text to it, or leave it out", ErrRequest, f.Path, counts[i], n, context, leastRows)
		}
		d.Clients, d.Rows = append(d.Clients, Client{f.Client, n}), d.Rows+n
	}
	return d, d.writeText(r, words, context)
}

// vocabularyOf finds one in the beginnings of all files.
func vocabularyOf(ctx context.Context, files []source.TextFile) (*bytepair.Encoding, error) {
	var text strings.Builder
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		own, err := data.ReadText(f.Path)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRequest, err)
		}
		text.WriteString(own[:min(len(own), max(1, mostLooked/len(files)))])
	}
	return bytepair.Train(text.String(), mostVocabulary)
}

func (d *Draft) writeText(r Request, words *bytepair.Encoding, context int) error {
	path, err := r.from(r.Path)
	if err != nil {
		return err
	}
	// Transformers drown in noise sooner than lines do: half of the rows in a step.
	s := settle(d.Clients, d.Rows)
	s.batch, s.rounds = max(1, s.publicSize/2), 10
	kind, judge := "fedavg                # one model for all, of which everybody trains on its own text; mr-mtl: a model each", judgeOwn
	if len(d.Clients) == 1 {
		kind, judge = "central               # there is one client", "judge: {by: test}            # the model on what is held out"
	}
	top, rest := &writer{marked: &d.NotPublic}, &writer{marked: &d.NotPublic}
	top.line("%sname: text\nseed: 1                      # keys which rows are held out, and where training starts\ndata:", fmt.Sprintf(textHead, comment(filepath.Base(r.Path))))
	top.line("  kind: text\n  source: {path: %s}   # where it lies: never sent to anybody", quoted(path))
	top.taken("data.merges", "  merges: %s", mergesFile)
	top.taken("data.vocabulary", "  vocabulary: %d", words.Vocabulary())
	if context < mostContext {
		top.taken("data.context", "  context: %d", context)
	} else {
		top.line("  context: %d                # words of one example: text is cut every so many", context)
	}
	top.line("  test_share: %v            # of every client's rows, to judge its model on", heldOut)
	fmt.Fprintf(rest, textModel, kind, s.rounds)
	rest.line("    # Rows in a step, about: half of public_size.")
	rest.taken("algorithm.local.batch", "    batch: %d", s.batch)
	rest.writePrivacy(s, "row")
	d.finish(top, rest, judge)
	var merges bytes.Buffer
	if err := words.Write(&merges); err != nil {
		return fmt.Errorf("write the vocabulary: %w", err)
	}
	d.Files = append(d.Files, File{mergesFile, merges.String()})
	return nil
}
