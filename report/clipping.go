package report

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/prose"
)

// learnWords say what online moves.
func learnWords(learn, step string) string {
	switch learn {
	case "clip":
		return "The clip follows the agreement of released sums, " + step + " stays"
	case "step":
		return capital(step) + " follows the agreement of released sums, the clip stays"
	case "nothing":
		return "Both stay, for comparison"
	case "random":
		return "Both are moved by coins, for comparison"
	}
	return "Both follow the agreement of released sums"
}

// clippingWords say how examples' gradients, or updates, are clipped, and how the clip is
// found; nothing where nothing is clipped.
func clippingWords(plan config.Run) string {
	p, l, text := plan.Privacy, plan.Algorithm.Local, ""
	what, clip, step, moves := "Every example’s gradient", p.Clip, "the step size at "+prose.Setting(l.Step), "the step size"
	switch p.Protects {
	case "client":
		what, clip, step, moves = "Every update", p.UpdateClip, "the server’s step at 1", "the server’s step"
	case "example":
	case "node":
		what = "Every person’s gradient"
	default:
		return ""
	}
	if clip == 0 {
		return ""
	}
	c, from := p.Clipping, "the clip starts at "+prose.Setting(clip)
	switch c.Rule {
	case "quantile":
		if c.Quantile == 0 {
			c.Quantile = 0.5
		}
		text = fmt.Sprintf("%s is clipped: %s and follows a quantile of the norms, by counts with noise, so that a share of %s of them lie below it (Andrew et al.). ", what, from, prose.Setting(c.Quantile))
	case "online":
		text = fmt.Sprintf("%s is clipped (OSO-DPSGD): %s, %s. %s. ", what, from, step, learnWords(c.Learn, moves))
	case "adam-wosm":
		text = fmt.Sprintf("%s is clipped to %s; Adam’s first moment is divided by the noise (Mohapatra et al.). ", what, prose.Setting(clip))
	default:
		text = fmt.Sprintf("%s is clipped to %s. ", what, prose.Setting(clip))
	}
	if c.GradientNoise > 0 {
		text += fmt.Sprintf("Their sum gets %s times the noise that is charged for: the rest pays for what the clip is learned from. ", prose.Setting(c.GradientNoise))
	}
	if c.Decay != 0 {
		text += fmt.Sprintf("The clip is multiplied by exp(%s) after every step, a public schedule. ", prose.Setting(-c.Decay))
	}
	if l.StepDecay > 0 {
		text += fmt.Sprintf("The step size is multiplied by exp(%s) after every step, a public schedule. ", prose.Setting(-l.StepDecay))
	}
	return text
}
