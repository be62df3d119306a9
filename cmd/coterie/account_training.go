package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

func (a *app) newAccountGaussianCommand() *cobra.Command {
	var f accountFlags
	var noise float64
	var steps int64
	cmd := accounting(&cobra.Command{
		Use:     "gaussian",
		Short:   "Epsilon of releases with Gaussian noise, without sampling",
		Example: "  coterie account gaussian --noise 2 --steps 100 --delta 1e-5",
	}, []string{"noise", "delta"}, func(*cobra.Command) error {
		r := f.release(event.AddRemove, event.Repeated{Times: steps, Of: event.Gaussian{Noise: noise}})
		g, err := f.spend(r)
		if err != nil {
			return err
		}
		own := map[string]any{"noise": noise, "steps": steps, "exact_epsilon": nil}
		if f.lattice() != nil {
			return a.answerRelease(f, r, g, own) // the closed form is of continuous noise
		}
		exact := g
		if exact.Epsilon, err = account.GaussianEpsilon(noise, steps, f.delta, r.Relation); err != nil {
			return accountError(err)
		}
		own["exact_epsilon"] = event.Number(exact.Epsilon)
		return a.answerRelease(f, r, g, own, "closed form (analytic Gaussian): "+told(exact))
	})
	f.register(cmd)
	cmd.Flags().Float64Var(&noise, "noise", 0, "S = sigma/C")
	cmd.Flags().Int64Var(&steps, "steps", 1, "number of releases")
	return cmd
}

// trainingFlags describe a plan of noised gradient steps.
type trainingFlags struct {
	accountFlags
	noise, rate                    float64
	batch, examples, steps, epochs int64
	sampling                       string
}

func (f *trainingFlags) register(cmd *cobra.Command) {
	f.accountFlags.register(cmd)
	flags := cmd.Flags()
	flags.Float64Var(&f.noise, "noise", 0, "S = sigma/C")
	flags.Float64Var(&f.rate, "rate", 0, "Poisson sampling rate")
	flags.Int64Var(&f.batch, "batch", 0, "batch size, with --examples")
	flags.Int64Var(&f.examples, "examples", 0, "number of examples, which must be public")
	flags.Int64Var(&f.steps, "steps", 0, "number of batches")
	flags.Int64Var(&f.epochs, "epochs", 0, "number of epochs, with --batch and --examples")
	flags.StringVar(&f.sampling, "sampling", string(event.Poisson), "poisson, without-replacement (every batch drawn afresh) or shuffle")
}

// training reads the plan; a rate or a length that is to be solved for may be left
// out.
func (f *trainingFlags) training(cmd *cobra.Command, solveRate, solveSteps bool) (account.Training, error) {
	fitting := event.AddRemove
	if event.Sampling(f.sampling) == event.WithoutReplacement {
		fitting = event.ReplaceOne
	}
	t := account.Training{
		Terms: f.terms(fitting), Trust: event.TrustLocal, Sampling: event.Sampling(f.sampling),
		Noise: f.noise, Rate: f.rate, Batch: f.batch, Examples: f.examples, Steps: f.steps, Lattice: f.lattice(),
	}
	if f.exact < 0 {
		return t, fmt.Errorf("%w: --exact-noise %d: want a number of coordinates", errUsage, f.exact)
	}
	sizes := cmd.Flags().Changed("batch") || cmd.Flags().Changed("examples")
	if sizes {
		if err := needFlags(cmd, "batch", "examples"); err != nil {
			return t, err
		}
		if _, err := account.Epochs(1, f.batch, f.examples); err != nil {
			return t, accountError(err)
		}
	}
	if !solveRate {
		if err := oneWay(cmd, "rate", "batch"); err != nil {
			return t, err
		}
	}
	if t.Sampling == event.Poisson && sizes {
		t.Rate = float64(f.batch) / float64(f.examples)
	} else if t.Sampling != event.Poisson && !sizes {
		return t, fmt.Errorf("%w: --sampling %s wants --batch and --examples", errUsage, f.sampling)
	}
	if solveSteps {
		return t, nil
	}
	if err := oneWay(cmd, "steps", "epochs"); err != nil {
		return t, err
	}
	return t, f.setLength(cmd, &t)
}

// setLength turns epochs into steps, or for shuffled batches steps into epochs.
func (f *trainingFlags) setLength(cmd *cobra.Command, t *account.Training) error {
	byEpochs := cmd.Flags().Changed("epochs")
	switch {
	case t.Sampling == event.Shuffle && byEpochs:
		t.Steps = f.epochs
	case t.Sampling == event.Shuffle:
		// A last, smaller batch may be dropped: then an epoch has fewer steps.
		each := f.examples / f.batch
		t.Steps = (f.steps + each - 1) / each
	case byEpochs:
		if err := needFlags(cmd, "batch", "examples"); err != nil {
			return err
		}
		steps, err := account.Epochs(f.epochs, f.batch, f.examples)
		if err != nil {
			return accountError(err)
		}
		t.Steps = steps
	}
	return nil
}

// answerTraining prints a plan and its cost.
func (a *app) answerTraining(f trainingFlags, t account.Training, g account.Guarantee, more ...string) error {
	own := map[string]any{"noise": t.Noise, "steps": t.Steps}
	if t.Sampling == event.Poisson {
		own["rate"] = t.Rate
		if f.examples > 0 {
			g.NotCovered = append(g.NotCovered, account.SizeNotCovered)
		}
	} else {
		own["batch"], own["examples"] = t.Batch, t.Examples
	}
	if t.Sampling == event.Shuffle {
		delete(own, "steps")
		own["epochs"] = t.Steps
		if paper, err := t.AsPaper(); err == nil {
			p, err := paper.Guarantee(account.MethodRDP, f.delta, f.orders...)
			if err != nil {
				return accountError(err)
			}
			own["paper_epsilon"] = event.Number(p.Epsilon)
			more = append(more, "the papers' reading, as if every batch were a Poisson sample, which no proof covers: "+told(p))
		}
	}
	r, err := t.Release()
	if err != nil {
		return accountError(err)
	}
	return a.answerRelease(f.accountFlags, r, g, own, more...)
}

func (a *app) newAccountDPSGDCommand() *cobra.Command {
	var f trainingFlags
	cmd := accounting(&cobra.Command{
		Use:   "dpsgd",
		Short: "Epsilon of noised gradient steps on sampled batches",
		Example: "  coterie account dpsgd --noise 1.1 --rate 0.01 --steps 10000 --delta 1e-5\n" +
			"  coterie account dpsgd --noise 1.1 --batch 512 --examples 60000 --epochs 10 --delta 1e-5 --accountant pld",
	}, []string{"noise", "delta"}, func(cmd *cobra.Command) error {
		t, err := f.training(cmd, false, false)
		if err != nil {
			return err
		}
		g, err := t.Guarantee(f.method(), f.delta, f.orders...)
		if err != nil {
			return accountError(err)
		}
		return a.answerTraining(f, t, g)
	})
	f.register(cmd)
	return cmd
}

// notOneStep says what a first step would need that is too much for the target.
func notOneStep(f trainingFlags, t account.Training, epsilon float64) (string, error) {
	t.Steps = 1
	one, err := t.Guarantee(f.method(), f.delta, f.orders...)
	if err != nil {
		return "", err
	}
	enough, _, err := t.WithNoiseFor(f.method(), epsilon, f.delta, f.orders...)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("steps 0: one step with noise %.8g at rate %.8g costs %s, above the target of %v; noise %.8g would do for one", t.Noise, t.Rate, told(one), epsilon, enough.Noise), nil
}

func (a *app) newAccountCalibrateCommand() *cobra.Command {
	var f trainingFlags
	var epsilon float64
	var runs int64
	cmd := accounting(&cobra.Command{
		Use:   "calibrate",
		Short: "Noise, steps or rate for a target epsilon: whichever is left out",
		Example: "  coterie account calibrate --epsilon 3 --delta 1e-5 --rate 0.00853 --steps 1180\n" +
			"  coterie account calibrate --epsilon 3 --delta 1e-5 --rate 0.00853 --noise 1    (how many steps?)\n" +
			"  coterie account calibrate --epsilon 3 --delta 1e-5 --noise 1 --steps 1180      (which rate?)",
	}, []string{"epsilon", "delta"}, func(cmd *cobra.Command) error {
		given := cmd.Flags().Changed
		solveNoise := !given("noise")
		solveSteps := !solveNoise && !given("steps") && !given("epochs")
		solveRate := !solveNoise && !solveSteps
		if solveRate && (given("rate") || given("batch")) {
			return fmt.Errorf("%w: noise, steps and rate are all given: leave out the one to solve for", errUsage)
		}
		t, err := f.training(cmd, solveRate, solveSteps)
		if err != nil {
			return err
		}
		t.Runs = runs
		var g account.Guarantee
		switch {
		case solveNoise:
			t, g, err = t.WithNoiseFor(f.method(), epsilon, f.delta, f.orders...)
		case solveSteps:
			t, g, err = t.WithStepsFor(f.method(), epsilon, f.delta, f.orders...)
		default:
			t, g, err = t.WithRateFor(f.method(), epsilon, f.delta, f.orders...)
		}
		if err != nil {
			return accountError(err)
		}
		line := fmt.Sprintf("noise %.8g, rate %.8g, steps %d", t.Noise, t.Rate, t.Steps)
		if solveSteps && t.Steps == 0 {
			if line, err = notOneStep(f, t, epsilon); err != nil {
				return accountError(err)
			}
		}
		return a.answerTraining(f, t, g, line)
	})
	f.register(cmd)
	cmd.Flags().Float64Var(&epsilon, "epsilon", 0, "the target")
	cmd.Flags().Int64Var(&runs, "runs", 1, "runs that share the budget: a grid search")
	return cmd
}
