package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/metrics"
)

func (a *app) newEvaluateCommand() *cobra.Command {
	var f rowFlags
	var merges string
	cmd := &cobra.Command{
		Use:   "evaluate MODEL",
		Short: "How well do trained models answer labelled rows, pictures or text?",
		Long: "Judge the models of a run directory, or of the out folder that coterie serve and join leave, on rows that have the target, on pictures in class folders, or on text: figures of every client and of all, with 95 % intervals.\n" +
			"What trained a model flatters it: take others.",
		Example: "  coterie evaluate runs/wards --data later.csv --client-column hospital\n" +
			"  coterie evaluate runs/scans --data later   # a folder a client, as in training",
		Args: oneModel,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := f.table()
			if err != nil {
				return err
			}
			m, err := openModel(args[0])
			if err != nil {
				return err
			}
			var found artifact.Evaluation
			switch {
			case m.Shape.Vocabulary > 0:
				found, err = m.EvaluateTexts(cmd.Context(), f.texts(merges))
			case m.Shape.Pictures():
				p, wrong := f.pictures()
				if wrong != nil {
					return wrong
				}
				found, err = m.EvaluatePictures(cmd.Context(), p)
			default:
				found, err = m.EvaluateTable(cmd.Context(), t)
			}
			if err != nil {
				return whoseIsUsage(err)
			}
			if a.output == "json" {
				return a.printJSON(struct {
					Model       string `json:"model"`
					ModelSHA256 string `json:"model_sha256"`
					Method      string `json:"method"`
					Task        string `json:"task"`
					artifact.Evaluation
				}{m.Path, m.ModelSHA256, m.Method, m.Task, found})
			}
			return a.printEvaluation(m, found)
		},
	}
	f.add(cmd)
	addMerges(cmd, &merges)
	return cmd
}

// addMerges adds the flag that says how text is cut.
func addMerges(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "merges", "", "of text: the file of pairs that the models were trained with (default: the one that the folder carries)")
}

// texts is what the flags mean for models of words.
func (f *rowFlags) texts(merges string) artifact.Texts {
	t := artifact.Texts{Path: f.source.Path, Client: f.client, Merges: merges, Folder: data.NewFolder(dataFolder(""))}
	if f.cluster >= 0 {
		t.Cluster = &f.cluster
	}
	return t
}

// printEvaluation shows figures to people.
func (a *app) printEvaluation(m *artifact.Model, found artifact.Evaluation) error {
	columns := []struct {
		name string
		of   func(metrics.Figures) *metrics.Figure
	}{
		{"AUC", func(f metrics.Figures) *metrics.Figure { return f.AUC }},
		{"average precision", func(f metrics.Figures) *metrics.Figure { return f.AveragePrecision }},
		{"accuracy", func(f metrics.Figures) *metrics.Figure { return f.Accuracy }},
		{"log loss", func(f metrics.Figures) *metrics.Figure { return f.LogLoss }},
		{"calibration slope", func(f metrics.Figures) *metrics.Figure { return f.CalibrationSlope }},
		{"RMSE", func(f metrics.Figures) *metrics.Figure { return f.RMSE }},
		{"MAE", func(f metrics.Figures) *metrics.Figure { return f.MAE }},
		{"R2", func(f metrics.Figures) *metrics.Figure { return f.R2 }},
		{"variance captured", func(f metrics.Figures) *metrics.Figure { return f.Captured }},
		{"log loss", func(f metrics.Figures) *metrics.Figure { return f.LogLoss }},
		{"perplexity", func(f metrics.Figures) *metrics.Figure { return f.Perplexity }},
	}
	shown := columns[:5]
	switch {
	case m.Shape.Vocabulary > 0:
		shown = columns[9:]
	case m.Components > 0:
		shown = columns[8:9]
	case m.Shape.Classes == 0:
		shown = columns[5:8]
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "client\t%s\tmodel", m.Examples())
	for _, c := range shown {
		fmt.Fprintf(w, "\t%s", c.name)
	}
	line := func(name string, rows int, model string, f metrics.Figures) {
		fmt.Fprintf(w, "\n%s\t%d\t%s", name, rows, model)
		for _, c := range shown {
			fmt.Fprintf(w, "\t%s", figureText(c.of(f)))
		}
	}
	for _, c := range found.Clients {
		line(c.Client, c.Rows, c.Model, c.Metrics)
	}
	line("all", found.Rows, "", found.Metrics)
	fmt.Fprintln(w)
	if err := w.Flush(); err != nil {
		return err
	}
	if found.LeftOut > 0 {
		a.remark("left out: %d rows without a target", found.LeftOut)
	}
	if len(found.Unjudged) > 0 {
		a.remark("left out: clients with a single row, which cannot choose a cluster: %s", strings.Join(found.Unjudged, ", "))
	}
	a.remark("In brackets: 95 %% intervals, over a client's %s, and for all over clients. They hold the models fixed.", m.Examples())
	for _, line := range found.NotCovered {
		a.remark("not covered: %s", line)
	}
	return nil
}

// figureText is a figure with its interval; - where there is none.
func figureText(f *metrics.Figure) string {
	switch {
	case f == nil:
		return "-"
	case f.Low == nil:
		return fmt.Sprintf("%.4g", float64(f.Value))
	}
	return fmt.Sprintf("%.4g (%.3g to %.3g)", float64(f.Value), float64(*f.Low), float64(*f.High))
}
