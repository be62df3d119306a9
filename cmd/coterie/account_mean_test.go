package main

import (
	"math"
	"strings"
	"testing"
)

var figure17 = []string{"mean-estimation", "--silos", "20", "--examples", "200", "--sigma", "0.4", "--tau", "0.08", "--epsilon", "0.25", "--delta", "1e-5"}

func TestAccountMeanEstimation(t *testing.T) {
	o := accountedJSON(t, append(figure17, "--simulate", "500", "--lambda", "0.1,10", "--mean-trials", "10", "--pivot=false")...)
	near(t, o, "noise", 14.567, 1e-3) // the authors' code, golden/cross_silo_and_node.json
	near(t, o, "best_lambda", (0.4*0.4/200+math.Pow(14.5668/200, 2))/0.0064, 1e-4)
	near(t, o, "gap_to_local", o["local_error"].(float64)-o["best_error"].(float64), 1e-9)
	if len(o["points"].([]any)) != 5 {
		t.Errorf("%d points, want 5", len(o["points"].([]any)))
	}
	tuning := o["tuning"].(map[string]any)
	near(t, tuning, "noise", 27.0448, 0.03)
	if tuning["pays"] != true || tuning["unit"] != "example" || len(tuning["not_covered"].([]any)) == 0 {
		t.Errorf("tuning: %v", tuning)
	}
	pivoted := accountedJSON(t, append(figure17, "--mean-trials", "10")...)["tuning"].(map[string]any)
	if pivoted["noise"].(float64) <= tuning["noise"].(float64) {
		t.Error("the pivot's release costs nothing")
	}

	if out, _, _ := accounted(t, figure17...); strings.Contains(out, "simulated") {
		t.Errorf("a column of nothing:\n%s", out)
	}
	if out, _, _ := accounted(t, append(figure17, "--simulate", "10")...); !strings.Contains(out, "from noise   simulated") {
		t.Errorf("no column of what was simulated:\n%s", out)
	}
	out, _, code := accounted(t, append(figure17, "--mean-trials", "10", "--eta", "5")...)
	if code != 0 || !strings.Contains(out, "do not tune") || !strings.Contains(out, "tuning: charged") {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestAccountMeanEstimationOfDifferentSilos(t *testing.T) {
	args := []string{"mean-estimation", "--silo", "200,0.4,0.25", "--silo", "1000,0.4,1", "--silo", "10,0.4,0.1", "--tau", "0.08", "--delta", "1e-5"}
	o := accountedJSON(t, args...)
	near(t, o, "epsilon", 1, 1e-6)
	silos := o["silos"].([]any)
	if len(silos) != 3 || silos[2].(map[string]any)["best_lambda"] != "inf" {
		t.Errorf("%v: the third silo is too noisy for any finite lambda", silos)
	}
	if none := accountedJSON(t, append(args, "--silo", "50,0.4,inf")...); none["claim"] != "none" {
		t.Errorf("one silo has no noise and the claim is %v", none["claim"])
	}
}

func TestAccountMeanEstimationRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"nothing":                      {"mean-estimation"},
		"both ways":                    append(figure17, "--silo", "200,0.4,0.25"),
		"half a silo":                  {"mean-estimation", "--silo", "200,0.4", "--tau", "1", "--delta", "1e-5"},
		"words":                        {"mean-estimation", "--silo", "200,x,1", "--tau", "1", "--delta", "1e-5"},
		"negative tau":                 {"mean-estimation", "--silo", "200,1,1", "--tau", "-1", "--delta", "1e-5"},
		"calibration":                  append(figure17, "--calibration", "guess"),
		"relation":                     append(figure17, "--relation", "metric"),
		"lambda":                       append(figure17, "--lambda", "-1"),
		"one draw":                     append(figure17, "--simulate", "1"),
		"no draws":                     append(figure17, "--simulate", "-5"),
		"minus trials":                 append(figure17, "--mean-trials", "-3"),
		"trials":                       append(figure17, "--mean-trials", "NaN"),
		"half a trial":                 append(figure17, "--mean-trials", "0.5"),
		"draws of silos that differ":   {"mean-estimation", "--silo", "200,0.4,0.25", "--silo", "100,0.4,0.25", "--tau", "1", "--delta", "1e-5", "--simulate", "100"},
		"lambdas of silos that differ": {"mean-estimation", "--silo", "200,0.4,0.25", "--silo", "100,0.4,0.25", "--tau", "1", "--delta", "1e-5", "--lambda", "1"},
		"shape":                        append(figure17, "--mean-trials", "10", "--eta", "-1"),
		"distribution":                 append(figure17, "--mean-trials", "10", "--distribution", "naive"),
		"free is tuned":                {"mean-estimation", "--silos", "2", "--examples", "2", "--sigma", "1", "--tau", "1", "--epsilon", "inf", "--delta", "1e-5", "--mean-trials", "3"},
	} {
		if _, errs, code := accounted(t, args...); code != exitUsage || errs == "" {
			t.Errorf("%s: exit %d, %q", name, code, errs)
		}
	}
}
