package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/whatif"
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
		answer := whatif.Answer{Cost: g, Release: r, Own: map[string]any{"noise": noise, "steps": steps, "exact_epsilon": nil}}
		if f.lattice() == nil { // the closed form is of continuous noise
			exact := g
			if exact.Epsilon, err = account.GaussianEpsilon(noise, steps, f.delta, r.Relation); err != nil {
				return accountError(err)
			}
			answer.Own["exact_epsilon"] = event.Number(exact.Epsilon)
			answer.Lines = []string{"closed form (analytic Gaussian): " + exact.Told()}
		}
		return a.answer(answer, f)
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
	if err := f.check(); err != nil {
		return t, err
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

// answerTraining solves for what is asked and prints the plan and its cost.
func (a *app) answerTraining(f trainingFlags, t account.Training, solve whatif.Unknown, target float64) error {
	answer, err := whatif.Training{By: f.by(), Plan: t, Solve: solve, Target: target, Sized: f.examples > 0}.Answer()
	if err != nil {
		return accountError(err)
	}
	return a.answer(answer, f.accountFlags)
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
		return a.answerTraining(f, t, whatif.Epsilon, 0)
	})
	f.register(cmd)
	return cmd
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
		solve := whatif.Rate
		switch {
		case !given("noise"):
			solve = whatif.Noise
		case !given("steps") && !given("epochs"):
			solve = whatif.Length
		case given("rate") || given("batch"):
			return fmt.Errorf("%w: noise, steps and rate are all given: leave out the one to solve for", errUsage)
		}
		t, err := f.training(cmd, solve == whatif.Rate, solve == whatif.Length)
		if err != nil {
			return err
		}
		t.Runs = runs
		return a.answerTraining(f, t, solve, epsilon)
	})
	f.register(cmd)
	cmd.Flags().Float64Var(&epsilon, "epsilon", 0, "the target")
	cmd.Flags().Int64Var(&runs, "runs", 1, "runs that share the budget: a grid search")
	return cmd
}
