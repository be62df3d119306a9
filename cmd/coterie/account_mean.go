package main

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/whatif"
	"github.com/coterie-fl/coterie/theory"
)

// meanFlags are what `coterie account mean-estimation` takes.
type meanFlags struct {
	target       theory.Target
	relation     string
	calibration  string
	silos        int
	one          theory.Silo
	different    []string
	tau          float64
	lambdas      []float64
	simulate     int
	seed         uint64
	distribution string
	meanTrials   float64
	eta          float64
	pivot        bool
}

func (a *app) newAccountMeanCommand() *cobra.Command {
	var f meanFlags
	cmd := &cobra.Command{
		Use:   "mean-estimation",
		Short: "How much to personalise? Best lambda and errors in closed form, and what tuning lambda costs",
		Long: "Silos estimate the mean of their own examples with private noise, pulled towards everyone's average by lambda\n" +
			"(paper 002, section 1.6): the best lambda, its error, and what training alone (lambda 0) and the plain average\n" +
			"(lambda inf) lose against it. --simulate checks the formulas; --mean-trials charges for tuning lambda.\n" +
			"Silos that differ are given one by one with --silo.",
		Example: "  coterie account mean-estimation --silos 20 --examples 200 --sigma 0.4 --tau 0.08 --epsilon 0.25 --delta 1e-5 --simulate 2000\n" +
			"  coterie account mean-estimation --silo 200,0.4,0.25 --silo 1000,0.4,1 --silo 50,0.4,inf --tau 0.08 --delta 1e-5\n" +
			"  coterie account mean-estimation --silos 20 --examples 200 --sigma 0.4 --tau 0.08 --epsilon 0.25 --delta 1e-5 --mean-trials 10 --eta 0",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			f.target.Relation, f.target.Calibration = event.Relation(f.relation), theory.Calibration(f.calibration)
			if len(f.different) > 0 {
				return accountError(a.meanOfDifferent(f))
			}
			return accountError(a.meanOfEqual(f))
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.silos, "silos", 0, "number of equal silos")
	flags.IntVar(&f.one.Examples, "examples", 0, "examples in each, a public number")
	flags.Float64Var(&f.one.Deviation, "sigma", 0, "standard deviation of examples around their silo's centre")
	flags.Float64Var(&f.tau, "tau", 0, "standard deviation of the silos' centres")
	flags.Float64Var(&f.target.Clip, "clip", 1, "bound on an example's size; the formulas assume that it clips nothing")
	flags.Float64Var(&f.target.Epsilon, "epsilon", 0, "every silo's target for its examples; inf: no noise")
	flags.Float64Var(&f.target.Delta, "delta", 0, "every silo's delta")
	flags.StringArrayVar(&f.different, "silo", nil, "EXAMPLES,SIGMA,EPSILON of one silo, instead of --silos, --examples, --sigma and --epsilon; repeat it")
	flags.StringVar(&f.relation, "relation", string(event.AddRemove), "add-remove or replace-one")
	flags.StringVar(&f.calibration, "calibration", string(theory.ByRDP), "noise from epsilon: rdp, analytic (least noise) or classical (the paper's formula, for epsilon below 1)")
	flags.Float64SliceVar(&f.lambdas, "lambda", nil, "also tell the error at these")
	flags.IntVar(&f.simulate, "simulate", 0, "draw so many federations and compare; 0: formulas only")
	flags.Uint64Var(&f.seed, "seed", 1, "of the simulation")
	flags.StringVar(&f.distribution, "distribution", event.TruncatedNegativeBinomial, "of the number of trials: tnb or poisson")
	flags.Float64Var(&f.meanTrials, "mean-trials", 0, "charge for tuning lambda by so many trials on average")
	flags.Float64Var(&f.eta, "eta", 0, "shape of the truncated negative binomial, above -1")
	flags.BoolVar(&f.pivot, "pivot", true, "tuning: also charge the one run that is sent; false: as figure 1.7 of the paper")
	return cmd
}

func (f *meanFlags) check(cmd *cobra.Command) error {
	if f.simulate < 0 {
		return fmt.Errorf("%w: --simulate %d: want a number of federations, or 0 for the formulas only", errUsage, f.simulate)
	}
	if !(f.meanTrials >= 0) {
		return fmt.Errorf("%w: --mean-trials %v: want a mean above 1, or 0 to charge for no tuning", errUsage, f.meanTrials)
	}
	if len(f.different) == 0 {
		return needFlags(cmd, "silos", "examples", "sigma", "tau", "epsilon", "delta")
	}
	for _, name := range []string{"silos", "examples", "sigma", "epsilon", "lambda", "simulate", "seed", "mean-trials", "distribution", "eta", "pivot"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("%w: --%s is for equal silos: it does not go with --silo", errUsage, name)
		}
	}
	return needFlags(cmd, "tau", "delta")
}

func (a *app) meanOfEqual(f meanFlags) error {
	s, g, err := f.target.Noise()
	if err != nil {
		return err
	}
	federation := theory.Equal{Silos: f.silos, Examples: f.one.Examples, Deviation: f.one.Deviation, Spread: f.tau, Noise: s * f.target.Clip}
	if err := federation.Validate(); err != nil {
		return err
	}
	for _, lambda := range f.lambdas {
		if !(lambda >= 0) {
			return fmt.Errorf("%w: --lambda %v: want a number >= 0", errUsage, lambda)
		}
	}
	best := federation.BestLambda()
	lambdas := append([]float64{0, best, math.Inf(1)}, f.lambdas...)
	var simulated []theory.Point
	if f.simulate > 0 {
		simulation := theory.Simulation{Federation: federation.Each(), Lambdas: lambdas, Repetitions: f.simulate, Seed: f.seed}
		if simulated, err = simulation.Run(); err != nil {
			return err
		}
	}
	own := map[string]any{
		"noise": event.Number(s), "local_variance": event.Number(federation.LocalVariance()), "best_lambda": event.Number(best),
		"best_error": event.Number(federation.BestError()), "local_error": event.Number(federation.LocalError()), "average_error": event.Number(federation.AverageError()),
		"gap_to_local": event.Number(federation.GapToLocal()), "gap_to_average": event.Number(federation.GapToAverage()),
	}
	lines := []string{
		fmt.Sprintf("noise S = %.6g on a silo's sum clipped to %.6g; its estimate has variance %.6g around its centre", s, f.target.Clip, federation.LocalVariance()),
		fmt.Sprintf("best lambda %.6g: training alone loses %.6g against it, the plain average %.6g", best, federation.GapToLocal(), federation.GapToAverage()),
	}
	points, table := meanPoints(federation, lambdas, simulated)
	own["points"] = points
	lines = append(lines, table...)
	if f.meanTrials > 0 {
		tuning, more, err := f.tuning(federation)
		if err != nil {
			return err
		}
		own["tuning"] = tuning
		lines = append(lines, more...)
	}
	return a.answerLines(whatif.Answer{Cost: g, Own: own}, lines)
}

// meanPoints is a table with one line a lambda.
func meanPoints(f theory.Equal, lambdas []float64, simulated []theory.Point) (points []map[string]any, lines []string) {
	lines = []string{fmt.Sprintf("%-12s %-12s %s", "lambda", "error", "from noise")}
	if simulated != nil {
		lines[0] += "   simulated"
	}
	for i, lambda := range lambdas {
		point := map[string]any{
			"lambda": event.Number(lambda), "error": event.Number(f.Error(lambda)), "privacy_cost": event.Number(f.PrivacyCost(lambda)),
			"own_weight": f.Weight(lambda), "simulated": nil, "standard_error": nil,
		}
		line := fmt.Sprintf("%-12.6g %-12.6g %-12.6g", lambda, f.Error(lambda), f.PrivacyCost(lambda))
		if simulated != nil {
			p := simulated[i]
			point["simulated"], point["standard_error"] = p.Error, p.StandardError
			line += fmt.Sprintf(" %.6g +- %.2g (%.1f standard errors off)", p.Error, p.StandardError, math.Abs(p.Error-f.Error(lambda))/p.StandardError)
		}
		points, lines = append(points, point), append(lines, strings.TrimRight(line, " "))
	}
	return points, lines
}

// tuning says whether tuning lambda pays once it is charged for.
func (f meanFlags) tuning(untuned theory.Equal) (map[string]any, []string, error) {
	t, err := theory.Tune(untuned, f.target, f.distribution, f.eta, f.meanTrials, f.pivot)
	if err != nil {
		return nil, nil, err
	}
	g := t.Guarantee.Fields()
	maps.Copy(g, map[string]any{
		"noise": event.Number(t.Noise), "distribution": f.distribution, "mean_trials": t.Trials.Mean, "eta": f.eta, "pivot": f.pivot, "gamma": event.Number(t.Trials.Gamma),
		"best_error": event.Number(t.Best), "expected_error": event.Number(t.Expected), "untuned_error": event.Number(t.Untuned), "pays": t.Pays(),
	})
	verdict := "tuning pays, if the choice among the trials is good"
	switch {
	case !t.Pays():
		verdict = "do not tune: even the best lambda loses against no tuning"
	case t.Expected >= t.Untuned:
		verdict = "do not tune: the lambdas that so many trials find lose against no tuning"
	}
	return g, []string{
		fmt.Sprintf("tuning by %.6g trials on average needs S = %.6g: error %.6g at the best lambda, %.6g expected with a free and perfect choice,",
			t.Trials.Mean, t.Noise, t.Best, t.Expected),
		fmt.Sprintf("against %.6g without tuning (the better of training alone and the plain average): %s", t.Untuned, verdict),
		"tuning: charged. Not covered: " + strings.Join(t.Guarantee.NotCovered, "; "),
	}, nil
}

func (a *app) meanOfDifferent(f meanFlags) error {
	federation := theory.Different{Spread: f.tau}
	var costs []account.Guarantee
	for i, text := range f.different {
		silo, epsilon, err := parseSilo(text)
		if err != nil {
			return fmt.Errorf("--silo %q: %w", text, err)
		}
		target := f.target
		target.Epsilon = epsilon
		s, g, err := target.Noise()
		if err != nil {
			return fmt.Errorf("silo %d: %w", i, err)
		}
		silo.Noise = s * target.Clip
		federation.Silos, costs = append(federation.Silos, silo), append(costs, g)
	}
	if err := federation.Validate(); err != nil {
		return err
	}
	all, err := theory.Together(costs)
	if err != nil {
		return err
	}
	var list []map[string]any
	lines := []string{fmt.Sprintf("%-6s %-12s %-14s %-12s %-12s %-12s %-12s %s", "silo", "epsilon", "local variance", "best lambda", "its error", "alone", "average", "epsilon's terms")}
	for k, silo := range federation.Silos {
		best := federation.BestLambda(k)
		fields := costs[k].Fields()
		for key, value := range map[string]float64{
			"noise": silo.Noise / f.target.Clip, "local_variance": silo.Variance(), "best_lambda": best, "best_error": federation.Error(k, best),
			"local_error": federation.Error(k, 0), "average_error": federation.Error(k, math.Inf(1)),
		} {
			fields[key] = event.Number(value)
		}
		list = append(list, fields)
		lines = append(lines, fmt.Sprintf("%-6d %-12.6g %-14.6g %-12.6g %-12.6g %-12.6g %-12.6g %s", k, costs[k].Epsilon, silo.Variance(), best,
			federation.Error(k, best), federation.Error(k, 0), federation.Error(k, math.Inf(1)), account.InTerms(costs[k].Statement())))
	}
	return a.answerLines(whatif.Answer{Cost: all, Own: map[string]any{"silos": list}}, lines)
}

func parseSilo(text string) (s theory.Silo, epsilon float64, err error) {
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		return s, 0, fmt.Errorf("%w: want EXAMPLES,SIGMA,EPSILON, for example 200,0.4,0.25", errUsage)
	}
	if s.Examples, err = strconv.Atoi(parts[0]); err != nil {
		return s, 0, fmt.Errorf("%w: examples: %w", errUsage, err)
	}
	if s.Deviation, err = strconv.ParseFloat(parts[1], 64); err != nil {
		return s, 0, fmt.Errorf("%w: sigma: %w", errUsage, err)
	}
	if epsilon, err = strconv.ParseFloat(parts[2], 64); err != nil {
		return s, 0, fmt.Errorf("%w: epsilon: %w", errUsage, err)
	}
	return s, epsilon, nil
}
