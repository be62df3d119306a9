package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

func (a *app) newDataCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:     "data",
		Short:   "Data sets: which there are, and what one's own looks like",
		Example: "  coterie data list\n  coterie data check run.yaml",
	}, a.newDataCheckCommand(), a.newDataListCommand(), a.newDataEncodingCommand(), a.newDataGenerateCommand(), a.newDataDealCommand(), a.newDataVocabularyCommand())
}

type checkFlags struct {
	runFlags
	report string
}

func (a *app) newDataCheckCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Read a run file's data and print what every client has; nothing is trained or sent",
		Long: "Read the data of a run file as a run would, and print clients, rows, missing cells and classes, and what lies outside its public ranges and lists.\n" +
			"All faults of a table are listed at once (exit code 2). The figures are private: they are for whoever holds the data.",
		Example: "  coterie data check run.yaml\n  coterie data check run.yaml --output json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := resolveRun(cmd, f.runFlags, args)
			if err != nil {
				return err
			}
			fed, err := unlessStopped(cmd.Context(), func() (*data.Federation, error) { return data.NewFolder(dataFolder(f.data)).Load(run.Data, run.Seed) })
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return a.tellData(fed, run, f, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.set, "set", nil, "set a value of the run file, for example --set data.test_share=0.3")
	addDataFolder(flags, &f.data)
	flags.StringVar(&f.report, "report", "", "write a page with a map and the epidemic curve to this file (data.kind pandemic)")
	return cmd
}

const (
	mostClients = 60 // that a table for people shows
	mostClasses = 12
)

// printSummary shows clients, and what was moved, to people.
func (a *app) printSummary(s data.Summary) error {
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	first := s.Clients[0]
	head := []string{"client", "rows", "held out"}
	if first.Missing != nil {
		head = append(head, "missing cells")
	}
	switch {
	case first.Mean == nil && first.Classes == nil: // the examples are their own targets
	case first.Classes == nil:
		head = append(head, "mean of the target", "its deviation")
	case len(first.Classes) <= mostClasses:
		for _, c := range first.Classes {
			head = append(head, c.Class)
		}
	default:
		head = append(head, fmt.Sprintf("classes of %d", len(first.Classes)))
	}
	fmt.Fprintln(t, strings.Join(head, "\t"))
	for i, c := range s.Clients {
		if i == mostClients {
			break
		}
		name := c.Name
		if name == "" {
			name = fmt.Sprint(i + 1)
		}
		if !c.Trains {
			name += " (validates)"
		}
		cells := []any{name, c.Rows, c.HeldOut}
		if c.Missing != nil {
			cells = append(cells, *c.Missing)
		}
		switch {
		case c.Mean == nil && c.Classes == nil:
		case c.Classes == nil:
			cells = append(cells, fmt.Sprintf("%.4g", *c.Mean), fmt.Sprintf("%.4g", *c.SD))
		case len(c.Classes) <= mostClasses:
			for _, k := range c.Classes {
				cells = append(cells, k.Rows)
			}
		default:
			there := 0
			for _, k := range c.Classes {
				there += min(1, k.Rows)
			}
			cells = append(cells, there)
		}
		fmt.Fprintf(t, strings.Repeat("%v\t", len(cells)-1)+"%v\n", cells...)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if more := len(s.Clients) - mostClients; more > 0 {
		a.remark("and %d more clients; --output json lists all", more)
	}
	if s.Report != nil {
		a.remark("\n%s", s.Report)
	}
	return nil
}

// listedKind is a kind of data as `coterie data list` prints it.
type listedKind struct {
	Name string `json:"name"`
	Is   string `json:"is"`
	Get  string `json:"get"`
}

func (a *app) newDataListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "The kinds of data, what they are and how to get them",
		Example: "  coterie data list",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var list []listedKind
			for _, k := range data.Kinds() {
				usual := config.Default(k.Name, "", "").Data
				usual.TestShare = 0
				list = append(list, listedKind{k.Name, k.Words(usual), k.Get})
			}
			if a.output == "json" {
				return a.printJSON(map[string]any{"kinds": list})
			}
			for _, k := range list {
				get := "Nothing is needed."
				if k.Get != "" {
					get = "Get it: " + k.Get + "."
				}
				if err := a.printLines(k.Name, "  "+k.Is+".", "  "+get); err != nil {
					return err
				}
			}
			a.remark("\nFiles of the built-in sets lie in the folder that --data or COTERIE_DATA names; docs/data.md says more.")
			return nil
		},
	}
}
