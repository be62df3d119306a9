package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/internal/manual"
	"github.com/coterie-fl/coterie/report"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// runFlags are what `coterie run` takes.
type runFlags struct {
	set     []string
	seed    uint64
	seeds   string
	queue   queueFlags
	workers int
	out     string
	data    string
	resume  string
	compare []string
	schema  bool
	manual  bool
}

func (a *app) newRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Train from a run file, in simulation",
		Long: "Train from a YAML run file (- is standard input), in simulation, and leave models, result and report in a run directory.\n" +
			"A run that was stopped goes on with --resume.",
		Example: "  coterie run examples/group-private.yaml --seed 7 --set privacy.noise_multiplier=2\n" +
			"  coterie run examples/ifca.yaml --seeds 1..20\n" +
			"  coterie run --resume coterie-runs/20261115-120000-ifca-1a2b3c",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd, f, args) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.set, "set", nil, "set a value of the run file, for example --set algorithm.rounds=100")
	flags.Uint64Var(&f.seed, "seed", 0, "seed, instead of the run file's")
	flags.StringVar(&f.seeds, "seeds", "", "make the run once for every seed, such as 1..100 or 3,5,8, each in a folder of its own, and say how far they spread")
	flags.IntVar(&f.workers, "workers", 0, "goroutines that train, instead of the run file's; the result is the same")
	flags.StringVar(&f.out, "out", "", "run directory (default ./coterie-runs/RUN_ID)")
	addDataFolder(flags, &f.data)
	flags.StringVar(&f.resume, "resume", "", "go on with the run in this directory")
	flags.StringSliceVar(&f.compare, "compare", nil, "methods to train the same file with as well and show beside it, for example local,fedavg; instead of the run file's")
	flags.BoolVar(&f.schema, "schema", false, "print the run file's JSON schema and exit")
	flags.BoolVar(&f.manual, "markdown", false, "with --schema: print docs/run-file.md, every key of the run file and of the files beside it, instead")
	f.queue.add(flags)
	return cmd
}

// dataFolder is the flag's, or the environment's.
func dataFolder(flag string) string { return cmp.Or(flag, os.Getenv("COTERIE_DATA")) }

func (a *app) run(cmd *cobra.Command, f runFlags, args []string) error {
	if f.schema || f.manual {
		return a.printSchema(f)
	}
	if f.seeds != "" {
		return a.runSeeds(cmd, f, args)
	}
	if f.queue.URL != "" || f.queue.listen != "" {
		return fmt.Errorf("%w: --nats and --listen hand the runs of many seeds to workers: give --seeds, for example --seeds 1..100", errUsage)
	}
	d, s, err := a.openRun(cmd, f, args)
	if err != nil {
		return err
	}
	defer d.Close()
	defer s.Close()
	memory := collectEarly()
	defer memory.end()
	run := s.Run()
	bar := a.progress(run.Name, 1)
	res, err := report.Run(cmd.Context(), d, s, version(), func(m sim.Moment) {
		memory.at(m)
		show(bar, m, run.Judge.Compare)
	})
	bar.Done()
	if err != nil {
		return err
	}
	if a.output == "json" {
		return a.printJSON(res.Summary)
	}
	return a.printRun(d, res)
}

// printSchema describes run files to editors, or to people.
func (a *app) printSchema(f runFlags) error {
	describe := config.Schema
	switch {
	case !f.schema:
		return fmt.Errorf("%w: --markdown is how --schema is written: give both", errUsage)
	case f.manual:
		describe = manual.RunFile
	}
	text, err := describe()
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(text)
	return err
}

// printRun shows a finished run to people.
func (a *app) printRun(d *sim.Directory, res sim.Result) error {
	others, err := report.Beside(d.Path, res)
	if err != nil {
		return err
	}
	shown := []sim.Summary{res.Summary}
	for _, o := range others {
		shown = append(shown, o.Summary)
	}
	if err := report.Table(a.stdout, shown); err != nil {
		return err
	}
	for _, r := range shown {
		if err := report.Untrained(a.stdout, r); err != nil {
			return err
		}
	}
	if len(res.Participants) > 0 && !a.quiet {
		a.remark("")
		if err := report.Lines(a.stdout, res.Summary); err != nil {
			return err
		}
	}
	if !a.quiet {
		if err := report.Course(a.stdout, res); err != nil {
			return err
		}
		if err := report.Paid(a.stdout, res.Summary); err != nil {
			return err
		}
	}
	if len(res.Privacy.Assumes) > 0 {
		a.remark("\nThe federation's line: epsilon %s (%s). It assumes that %s.",
			upTo(res.Privacy.Epsilon, 4), account.InTerms(res.Privacy.Statement), strings.Join(res.Privacy.Assumes, "; "))
	}
	a.remark("")
	for _, line := range res.Privacy.NotCovered {
		a.remark("not covered: %s", line)
	}
	if c := res.Crowd; c != nil {
		a.remark("\n%s", report.Crowd(res.Summary))
	}
	if res.Device != nil {
		a.remark("\ndevice  %s", res.Device)
	}
	a.remark("\nmodels  %s\nsha256  %s (%s)\nreport  %s", d.File(sim.ModelFile), res.ModelSHA256, res.Kernel, res.Report)
	return nil
}

// openRun prepares the run and its directory, new or to go on with. Nothing is
// created when the configuration is wrong or data are missing.
func (a *app) openRun(cmd *cobra.Command, f runFlags, args []string) (*sim.Directory, *sim.Simulation, error) {
	if f.resume != "" {
		return resumeRun(cmd, f, args)
	}
	run, err := resolveRun(cmd, f, args)
	if err != nil {
		return nil, nil, err
	}
	resolved, err := run.Encode()
	if err != nil {
		return nil, nil, err
	}
	out := f.out
	if out == "" {
		hash, err := run.Hash()
		if err != nil {
			return nil, nil, err
		}
		out = defaultDirectory(run.Name + "-" + hash[:6])
	}
	s, err := sim.NewUntil(cmd.Context(), run, data.NewFolder(dataFolder(f.data)))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", args[0], err)
	}
	d, err := sim.CreateDirectory(out, resolved)
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	d.Continue += flagIfGiven("--data", f.data)
	return d, s, nil
}

// flagIfGiven is a flag as a command line has it that is given again.
func flagIfGiven(name, path string) string {
	if path == "" {
		return ""
	}
	return " " + name + " " + prose.ShellWord(path)
}

func resumeRun(cmd *cobra.Command, f runFlags, args []string) (*sim.Directory, *sim.Simulation, error) {
	changed := cmd.Flags().Changed
	if len(args) > 0 || len(f.set) > 0 || changed("seed") || changed("compare") || f.out != "" {
		return nil, nil, fmt.Errorf("%w: --resume goes on with the run as it was: it takes no FILE, --set, --seed, --compare or --out", errUsage)
	}
	d, run, err := sim.OpenDirectory(f.resume)
	if err != nil {
		return nil, nil, err
	}
	if changed("workers") {
		run.Run.Workers = f.workers
	}
	d.Continue += flagIfGiven("--data", f.data)
	s, err := sim.NewUntil(cmd.Context(), run, data.NewFolder(dataFolder(f.data)))
	if err != nil {
		d.Close()
		return nil, nil, fmt.Errorf("%s: %w", f.resume, err)
	}
	return d, s, nil
}

// resolveRun reads the run file, applies the flags to it, and checks it; a command
// may ask for more than a run does.
func resolveRun(cmd *cobra.Command, f runFlags, args []string, also ...func(config.Run) config.Faults) (config.Run, error) {
	if len(args) != 1 {
		return config.Run{}, fmt.Errorf("%w: name one run file, for example: coterie run examples/ifca.yaml", errUsage)
	}
	text, err := readRunFile(args[0], cmd.InOrStdin())
	if err != nil {
		return config.Run{}, err
	}
	if cmd.Flags().Changed("seed") {
		f.set = append(f.set, "seed="+strconv.FormatUint(f.seed, 10))
	}
	if cmd.Flags().Changed("workers") {
		f.set = append(f.set, "run.workers="+strconv.Itoa(f.workers))
	}
	if cmd.Flags().Changed("compare") {
		f.set = append(f.set, "judge.compare=["+strings.Join(f.compare, ", ")+"]")
	}
	if config.Empty(text) {
		return config.Run{}, fmt.Errorf("%w: the run file %s says nothing, so that there is nothing to train; coterie init writes one for data of your own, coterie demo shows a run that needs none", errUsage, args[0])
	}
	run, err := config.ResolveIn(filepath.Dir(args[0]), text, f.set, append(sim.Checks(), also...)...) // of standard input: the working directory
	if err != nil {
		return config.Run{}, fmt.Errorf("%s: %w", args[0], err)
	}
	return run, nil
}

// defaultDirectory is named by time; a second run within the same second gets a
// number.
func defaultDirectory(name string) string {
	base := filepath.Join("coterie-runs", time.Now().UTC().Format("20060102-150405")+"-"+name)
	path := base
	for i := 2; ; i++ {
		if _, err := os.Stat(path); err != nil {
			return path
		}
		path = fmt.Sprintf("%s-%d", base, i)
	}
}

func readRunFile(name string, stdin io.Reader) ([]byte, error) {
	r := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("%w: read the run file: %w", errUsage, err)
		}
		defer f.Close()
		r = f
	}
	text, err := io.ReadAll(io.LimitReader(r, config.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the run file %s: %w", name, err)
	}
	return text, nil
}

func (a *app) newReportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "report DIR...",
		Short: "Write the one-file report of finished runs again",
		Long: "Write the one-file report again from the results in run directories. Several directories are shown side by side in the first one's report.\n" +
			"The folder that coterie serve leaves gets the report of its federation: who released, what each says it has spent, how the rounds went.",
		Example: "  coterie report coterie-runs/20261115-120000-ifca-1a2b3c",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, dirs []string) error {
			path, err := filepath.Abs(filepath.Join(dirs[0], sim.ReportFile))
			if err != nil {
				return err
			}
			if err := report.Rewrite(path, dirs); err != nil {
				return err
			}
			return a.tell(map[string]string{"report": path}, "report  %s", path)
		},
	}
}
