package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// accounted runs an accounting command in this process.
func accounted(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(t.Context(), append([]string{"account"}, args...), &out, &errs)
	return out.String(), errs.String(), code
}

// The real program prints the same and exits with the same codes.
func TestAccountBinary(t *testing.T) {
	out, _, code := coterie(t, "account", "gaussian", "--noise", "2", "--steps", "100", "--delta", "1e-5", "--output", "json")
	same, _, _ := accounted(t, "gaussian", "--noise", "2", "--steps", "100", "--delta", "1e-5", "--output", "json")
	if code != 0 || out != same {
		t.Errorf("exit %d: %s, in process %s", code, out, same)
	}
	if _, errs, code := coterie(t, "account", "gaussian", "--noise", "0", "--delta", "1e-5"); code != exitUsage || errs == "" {
		t.Errorf("no noise: exit %d, %q", code, errs)
	}
}

func accountedJSON(t *testing.T, args ...string) map[string]any {
	t.Helper()
	out, errs, code := accounted(t, append(args, "--output", "json")...)
	if code != 0 {
		t.Fatalf("account %v: exit %d: %s", args, code, errs)
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(out), &object); err != nil {
		t.Fatalf("account %v: %v in %s", args, err, out)
	}
	for _, key := range []string{"claim", "unit", "relation", "trust", "epsilon", "delta", "sampling", "radius", "not_covered", "order", "accountant"} {
		if _, ok := object[key]; !ok {
			t.Errorf("account %v: no key %q in %s", args, key, out)
		}
	}
	return object
}

func near(t *testing.T, object map[string]any, key string, want, tolerance float64) {
	t.Helper()
	got, ok := object[key].(float64)
	if !ok || math.Abs(got/want-1) > tolerance {
		t.Errorf("%s = %v, want %v within %v", key, object[key], want, tolerance)
	}
}

const tfOrders = "1.25,1.5,1.75,2,2.25,2.5,3,3.5,4,4.5,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,128,256,512"

// Figures of the golden files in dp/account/testdata, through the command line.
func TestAccountGolden(t *testing.T) {
	// cross_silo_and_node.json, base_gaussian_q1_eps and forward_rows.
	o := accountedJSON(t, "gaussian", "--noise", "5", "--delta", "1e-5", "--orders", tfOrders)
	near(t, o, "epsilon", 0.794522032537103, 1e-6)
	o = accountedJSON(t, "dpsgd", "--noise", "4", "--rate", "0.07339449541284404", "--steps", "5213", "--delta", "1e-7", "--orders", tfOrders)
	near(t, o, "epsilon", 7.992557410670704, 1e-6)
	o = accountedJSON(t, "selection", "--epsilon", "0.05", "--selections", "400", "--noise", "4", "--rate", "0.07339449541284404", "--steps", "5213", "--delta", "1e-7", "--orders", tfOrders)
	near(t, o, "epsilon", 8.606919054112911, 1e-6)
	// The same file, tnb_tuning (eta -0.5, mean 5) and silo rows.
	o = accountedJSON(t, "tuning", "--noise", "5", "--delta", "1e-5", "--distribution", "tnb", "--eta", "-0.5", "--gamma", "0.012344386366973908", "--orders", tfOrders)
	near(t, o, "epsilon", 1.1559841062884426, 1e-4)
	o = accountedJSON(t, "calibrate", "--epsilon", "0.1", "--delta", "1e-7", "--rate", "0.07339449541284404", "--steps", "5213", "--orders", tfOrders)
	near(t, o, "noise", 239.94296977896215, 1e-5)
	// node_level, S 50, three epochs.
	o = accountedJSON(t, "node", "--nodes", "2609976", "--degree", "50", "--batch", "512", "--epochs", "3", "--noise", "10", "--delta", "3.831452856271475e-07", "--orders", "2.5,3,3.25")
	near(t, o, "epsilon", 16.11996301891749, 1e-4)
	o = accountedJSON(t, "node", "--nodes", "2609976", "--degree", "50", "--batch", "512", "--epochs", "3", "--noise", "10", "--delta", "3.831452856271475e-07", "--orders", "4.5,4.75,5", "--formula", "authors-code")
	near(t, o, "epsilon", 7.059072989698464, 1e-4)
	if o["claim"] != "heuristic" || o["unit"] != "node" {
		t.Errorf("the authors' formula: %v", o)
	}
	// One degree tells both: 2S-1 examples change if contacts are replaced, too.
	node := []string{"node", "--nodes", "26099", "--batch", "512", "--epochs", "1", "--noise", "10", "--delta", "1e-6", "--degree"}
	moved := accountedJSON(t, append(node, "20")...)["contacts_replaced"].(map[string]any)
	if moved["examples"] != 39. {
		t.Errorf("replaced with its contacts: %v", moved)
	}
	near(t, moved, "epsilon", accountedJSON(t, append(node, "39")...)["epsilon"].(float64), 1e-9)
	if o := accountedJSON(t, append(node, "20", "--relation", "full-removal")...); o["contacts_replaced"] != nil {
		t.Errorf("removal: %v", o)
	}
	// google_dp_accounting.json, PLD.
	o = accountedJSON(t, "dpsgd", "--noise", "0.5", "--rate", "0.1", "--steps", "100", "--delta", "1e-5", "--accountant", "pld")
	near(t, o, "epsilon", 31.370995078475868, 1e-3)
	// Without replacement: the golden nm 0.7 is S = 1.4.
	o = accountedJSON(t, "dpsgd", "--noise", "1.4", "--batch", "512", "--examples", "60000", "--steps", "1000", "--delta", "1e-5",
		"--sampling", "without-replacement", "--orders", "2,3,4,5")
	near(t, o, "epsilon", 6.762588684070213, 1e-6)
	if o["relation"] != "replace-one" {
		t.Errorf("without replacement is accounted under %v", o["relation"])
	}
}

func TestAccountMetric(t *testing.T) {
	o := accountedJSON(t, "metric", "--dimension", "2", "--noise-multiplier", "5", "--releases", "6", "--radius", "0.5", "--distance", "1")
	near(t, o, "epsilon", 2.4, 1e-15)
	near(t, o, "epsilon_per_release", 0.4, 1e-15)
	near(t, o, "epsilon_at_distance", 4.8, 1e-12)
	near(t, o, "radius", 0.5, 0)
	if o["claim"] != "metric" || o["relation"] != "metric" || o["delta"] != 0.0 {
		t.Errorf("metric: %v", o)
	}
}

// Whichever of noise, steps and rate is left out is solved for, and never costs
// more than the target.
func TestAccountCalibrate(t *testing.T) {
	for solved, args := range map[string][]string{
		"noise": {"--rate", "0.01", "--steps", "1000"},
		"steps": {"--rate", "0.01", "--noise", "1"},
		"rate":  {"--noise", "1", "--steps", "1000"},
	} {
		o := accountedJSON(t, append([]string{"calibrate", "--epsilon", "2", "--delta", "1e-5"}, args...)...)
		if e := o["epsilon"].(float64); e > 2 || e < 1.98 {
			t.Errorf("%s: epsilon %v", solved, e)
		}
		if o[solved] == nil {
			t.Errorf("no %s in %v", solved, o)
		}
	}
	one := accountedJSON(t, "calibrate", "--epsilon", "2", "--delta", "1e-5", "--rate", "0.01", "--steps", "5000")
	grid := accountedJSON(t, "calibrate", "--epsilon", "2", "--delta", "1e-5", "--rate", "0.01", "--steps", "1000", "--runs", "5")
	near(t, grid, "noise", one["noise"].(float64), 1e-6)
}

func TestAccountShuffleIsNotAmplified(t *testing.T) {
	o := accountedJSON(t, "dpsgd", "--noise", "4", "--batch", "512", "--examples", "60000", "--epochs", "10", "--delta", "1e-5", "--sampling", "shuffle")
	plain := accountedJSON(t, "gaussian", "--noise", "4", "--steps", "10", "--delta", "1e-5")
	near(t, o, "epsilon", plain["epsilon"].(float64), 1e-12)
	if paper := o["paper_epsilon"].(float64); paper >= o["epsilon"].(float64) {
		t.Errorf("the papers' reading %v is not below the sound %v", paper, o["epsilon"])
	}
	twice := accountedJSON(t, "dpsgd", "--noise", "8", "--batch", "512", "--examples", "60000", "--epochs", "10", "--delta", "1e-5", "--sampling", "shuffle", "--relation", "replace-one")
	near(t, twice, "epsilon", plain["epsilon"].(float64), 1e-12)
}

func TestAccountInfinity(t *testing.T) {
	o := accountedJSON(t, "gaussian", "--noise", "1", "--delta", "0")
	if o["epsilon"] != "inf" {
		t.Errorf("epsilon at delta 0: %v", o["epsilon"])
	}
	if o := accountedJSON(t, "gaussian", "--noise", "1", "--steps", "0", "--delta", "0"); o["epsilon"] != 0.0 {
		t.Errorf("epsilon of nothing: %v", o["epsilon"])
	}
}

func TestAccountSilo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "silos.csv")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("silo,examples,batch,epochs,epsilon,delta\nnorth,872,64,10,0.5,1e-7\nsouth,1933,64,10,2,1e-6\n")
	o := accountedJSON(t, "silo", file)
	if e := o["epsilon"].(float64); e > 2 || e < 1.99 || o["delta"] != 1e-6 {
		t.Errorf("federation: epsilon %v, delta %v", o["epsilon"], o["delta"])
	}
	silos := o["silos"].([]any)
	if north := silos[0].(map[string]any); len(silos) != 2 || north["silo"] != "north" || north["epsilon"].(float64) > 0.5 || north["steps"] != 140.0 {
		t.Errorf("silos: %v", silos)
	}
	for _, spreadsheet := range []string{
		"\ufeffsilo,examples,batch,epochs,epsilon,delta\r\nnorth,872,64,10,0.5,1e-7\r\nsouth,1933,64,10,2,1e-6\r\n",
		"silo; examples;batch;epochs;epsilon;delta\nnorth;872;64;10;0,5;1e-7\nsouth;1933;64;10;2;1e-6\n",
		"\ufeffsilo\texamples\tbatch\tepochs\tepsilon\tdelta\nnorth\t872\t64\t10\t0,5\t0,0000001\nsouth\t1933\t64\t10\t2\t1e-6\n",
	} {
		write(spreadsheet)
		if again := accountedJSON(t, "silo", file); !reflect.DeepEqual(again, o) {
			t.Errorf("%q: %v, want %v", spreadsheet, again, o)
		}
	}
	for _, bad := range []string{
		"\ufeff", "silo;examples,batch;epochs;epsilon;delta\nnorth;1,9;1;1;1;1e-5\n", "silo;examples;batch;epochs;epsilon;delta\nnorth;99;9,5;1;1;1e-5\n",
		"", "silo,examples\nnorth,872\n", "silo,examples,batch,epochs,epsilon,delta\n",
		"silo,examples,batch,epochs,epsilon,delta\nnorth,10,64,1,1,1e-5\n",
		"silo,examples,batch,epochs,epsilon,delta\nnorth,x,64,1,NaN,1e-5\n",
		"silo,examples,batch,epochs,epsilon,delta\na,99,9,1,1,1e-5\na,99,9,1,1,1e-5\n",
	} {
		write(bad)
		if out, _, code := accounted(t, "silo", file); code != exitUsage {
			t.Errorf("%q: exit %d, printed %s", bad, code, out)
		}
	}
	if _, _, code := accounted(t, "silo", file+"-not-there"); code != exitFailure {
		t.Errorf("missing file: exit %d", code)
	}
}

func TestAccountWrongUsage(t *testing.T) {
	for _, args := range []string{
		"gaussian --noise 1", "gaussian --noise -1 --delta 1e-5", "gaussian --noise NaN --delta 1e-5", "gaussian --noise 1 --delta 1",
		"gaussian --noise 1 --delta -1e-5", "gaussian --noise 1 --steps -1 --delta 1e-5", "gaussian --noise 1 --delta 1e-5 --relation swap",
		"gaussian --noise 1 --delta 1e-5 --accountant moments", "gaussian --noise 1 --delta 1e-5 --orders 1", "gaussian --noise 1 --delta 1e-5 --sensitivity 2",
		"dpsgd --noise 1 --rate 0.1 --delta 1e-5", "dpsgd --noise 1 --rate 1.5 --steps 1 --delta 1e-5",
		"dpsgd --noise 1 --rate 0.1 --batch 5 --examples 50 --steps 1 --delta 1e-5",
		"dpsgd --noise 1 --rate 0.1 --steps 1 --delta 1e-5 --relation replace-one",
		"dpsgd --noise 1 --batch 5 --examples 50 --steps 1 --delta 1e-5 --sampling without-replacement --relation add-remove",
		"dpsgd --noise 1 --rate 0.1 --steps 1 --delta 1e-5 --sampling shuffle",
		"dpsgd --noise 1 --batch 50 --examples 5 --epochs 1 --delta 1e-5",
		"dpsgd --noise 1 --batch 5 --examples 50 --epochs 1 --delta 1e-5 --sampling without-replacement --accountant pld",
		"calibrate --epsilon 0 --delta 1e-5 --rate 0.1 --steps 10", "calibrate --epsilon 1 --delta 1e-5 --rate 0.1 --steps 10 --noise 1",
		"metric --dimension 0 --noise-multiplier 5 --releases 1", "metric --dimension 2 --noise-multiplier 5 --releases 1 --distance 1",
		"node --nodes 10 --degree 20 --batch 5 --epochs 1 --noise 1 --delta 1e-5",
		"selection --epsilon 1 --selections 5 --delta 1e-5 --mechanism best", "selection --epsilon 1 --selections 5 --delta 1e-5 --rate 0.1",
		"tuning --noise 1 --delta 1e-5", "tuning --noise 1 --delta 1e-5 --mean-trials 5 --eta -1", "nonsense", "silo",
	} {
		out, errs, code := accounted(t, strings.Fields(args)...)
		if code != exitUsage || errs == "" || out != "" {
			t.Errorf("account %s: exit %d, printed %q, said %q", args, code, out, errs)
		}
	}
	if _, errs, code := accounted(t, "calibrate", "--epsilon", "1", "--delta", "1e-5", "--noise", "1e12", "--rate", "1e-9", "--accountant", "rdp"); code != exitFailure || !strings.Contains(errs, "target cannot be reached: epsilon stays below 1") {
		t.Errorf("unlimited steps: exit %d: %s", code, errs)
	}
}

// The sentence names what is protected, how much, on which terms, and what is not.
func TestAccountSentence(t *testing.T) {
	out, _, code := accounted(t, "dpsgd", "--noise", "1", "--rate", "0.01", "--steps", "100", "--delta", "1e-5", "--explain")
	for _, want := range []string{"example", "epsilon =", "delta = 1e-05", "add-remove", "server is not trusted", "poisson", "Not covered", "tuning", "released: 100 times Gaussian noise of 1 times the clip on batches that each example is in with chance 0.01", "pld"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, no %q in:\n%s", code, want, out)
		}
	}
}
