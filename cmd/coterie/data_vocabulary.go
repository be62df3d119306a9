package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/bytepair"
	"github.com/coterie-fl/coterie/data/source"
	"github.com/coterie-fl/coterie/internal/durable"
)

// uncoveredVocabulary is what whoever uses a vocabulary should know.
const uncoveredVocabulary = "the text that the vocabulary comes from: its most frequent words stand in the file. Take text that is public, or write data.merges into data.not_public"

// newDataVocabularyCommand finds the pairs that text is cut into words by.
func (a *app) newDataVocabularyCommand() *cobra.Command {
	var size int
	var out string
	cmd := &cobra.Command{
		Use:   "vocabulary FILE...",
		Short: "Find the words that text is cut into, in text",
		Long: "Find the most frequent pairs in files of text, or in folders of .txt and .txt.gz files, again and again, as GPT-2's vocabulary was found, and write them in the format of its vocab.bpe, for data.merges.\n" +
			"The file tells of the text that it comes from: take public text.",
		Example: "  coterie data vocabulary public.txt --size 2048 --out merges.bpe",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if size < bytepair.Bytes || size > bytepair.Most {
				return fmt.Errorf("%w: --size %d; allowed: %d to %d", errUsage, size, bytepair.Bytes, bytepair.Most)
			}
			var text strings.Builder
			var read int
			for _, path := range args {
				files, err := source.TextFiles(path)
				if err != nil {
					return err
				}
				for _, f := range files {
					own, err := data.ReadText(f.Path)
					if err != nil {
						return err
					}
					text.WriteString(own)
					read++
				}
			}
			e, err := bytepair.Train(text.String(), size)
			if err != nil {
				return err
			}
			full, err := filepath.Abs(out)
			if err != nil {
				return fmt.Errorf("find the file: %w", err)
			}
			if err := durable.Replace(full, 0o644, func(w io.Writer) error { return e.Write(w) }); err != nil {
				return err
			}
			early := ""
			if e.Vocabulary() < size {
				early = fmt.Sprintf("\nno further pair comes twice in so short a text: set data.vocabulary %d", e.Vocabulary())
			}
			return a.tell(struct {
				Files      int      `json:"files"`
				Vocabulary int      `json:"vocabulary"`
				Out        string   `json:"out"`
				NotCovered []string `json:"not_covered"`
			}{read, e.Vocabulary(), full, []string{uncoveredVocabulary}}, "%d words, written to %s%s\nnot covered: %s", e.Vocabulary(), full, early, uncoveredVocabulary)
		},
	}
	cmd.Flags().IntVar(&size, "size", 2048, "words in all: the 256 bytes, and what pairs make")
	cmd.Flags().StringVar(&out, "out", "merges.bpe", "the file")
	return cmd
}
