// Package config is the run file: its types, strict loading with positions, schema and hash.
package config

// Run is a whole run file. Ranges stand in the tags: the loader and the
// published schema read the same ones.
type Run struct {
	Name      string    `yaml:"name" jsonschema:"pattern=^[A-Za-z0-9][A-Za-z0-9._-]*$,maxLength=64" jsonschema_description:"what the run is called; the algorithm's name if empty"`
	Seed      uint64    `yaml:"seed" jsonschema:"minimum=0" jsonschema_description:"everything random in a simulation follows from it"`
	Data      Data      `yaml:"data" jsonschema_description:"what is trained on"`
	Model     Model     `yaml:"model" jsonschema_description:"what is trained"`
	Algorithm Algorithm `yaml:"algorithm" jsonschema_description:"how it is trained"`
	Privacy   Privacy   `yaml:"privacy" jsonschema_description:"what a release may reveal"`
	Judge     Judge     `yaml:"judge" jsonschema_description:"what the models are judged by"`
	Run       Execution `yaml:"run" jsonschema_description:"speed only: nothing here changes a result"`
}

// Data describes the clients: the synthetic linear federation, y = x·theta_g +
// shift_g + u, or real data. Keys of other kinds than the one
// named are faults, unless they have their default value: package data registers the
// kinds with their keys.
type Data struct {
	Kind              string       `yaml:"kind" registered:"data" jsonschema_description:"synthetic: drawn from the seed; the others: real data from the folder that --data or COTERIE_DATA names"`
	Users             int          `yaml:"users" jsonschema:"minimum=1,maximum=10000000" jsonschema_description:"clients that train"`
	ValidationUsers   int          `yaml:"validation_users" jsonschema:"minimum=1,maximum=10000000" jsonschema_description:"held-out clients"`
	Samples           int          `yaml:"samples" jsonschema:"minimum=1,maximum=1000000" jsonschema_description:"rows that each client holds"`
	Groups            int          `yaml:"groups" jsonschema:"minimum=0,maximum=1000" jsonschema_description:"groups of clients; 0: as many as parameters has rows"`
	Dimension         int          `yaml:"dimension" jsonschema:"minimum=0,maximum=100000" jsonschema_description:"features; 0: as parameters says"`
	Parameters        [][]float64  `yaml:"parameters" jsonschema_description:"theta of every group; empty: the papers' two for 2 groups in 2 dimensions, otherwise drawn from N(0, 25)"`
	Shares            []float64    `yaml:"shares" jsonschema_description:"share of the clients in every group, adding up to 1; empty: equal"`
	Shift             []float64    `yaml:"shift" jsonschema_description:"constant added to y in every group; empty: none"`
	X                 Distribution `yaml:"x" jsonschema_description:"how every feature is drawn"`
	Noise             Distribution `yaml:"noise" jsonschema_description:"how u is drawn"`
	Year              int          `yaml:"year" jsonschema:"minimum=2011,maximum=2016" jsonschema_description:"hospital: fiscal year of the file, 2011 (six states) or 2016"`
	DRGs              []int        `yaml:"drgs" jsonschema_description:"hospital: the conditions, in the order of their index"`
	Index             string       `yaml:"index" jsonschema:"enum=listing,enum=code" jsonschema_description:"hospital: number the conditions as listed or by their code"`
	Set               string       `yaml:"set" jsonschema:"enum=unipen,enum=mnist,enum=femnist" jsonschema_description:"writers: whose handwriting; femnist: LEAF's files in the folder femnist"`
	Rotated           float64      `yaml:"rotated" jsonschema:"minimum=0,maximum=1" jsonschema_description:"writers: probability that a writer's pictures are rotated by 90 degrees"`
	TrainShare        float64      `yaml:"train_share" jsonschema:"exclusiveMinimum=0,maximum=1" jsonschema_description:"hospital and writers: share of the clients that train; the others validate"`
	Ink               string       `yaml:"ink,omitempty" jsonschema:"enum=dark,enum=light" jsonschema_description:"writers: dark ink on white (the default), as LEAF has it, or light on black, as MNIST has it, which trains faster"`
	Partition         string       `yaml:"partition,omitempty" jsonschema:"enum=random,enum=sex,enum=race" jsonschema_description:"adult and compas: clients of samples rows each, dealt out at random (the default), or so that all rows of a client have the same sex or race"`
	SensitiveFeatures bool         `yaml:"sensitive_features,omitempty" jsonschema_description:"adult and compas: sex and race are features, too"`
	TestShare         float64      `yaml:"test_share,omitempty" jsonschema:"minimum=0,exclusiveMaximum=1" jsonschema_description:"share of every training client's own examples that is held out, each by a hash of itself that the seed keys; 0: none, except silos, which always hold some out"`
	TrainLimit        int          `yaml:"train_limit,omitempty" jsonschema:"minimum=0,maximum=1000000000" jsonschema_description:"silos: at most so many examples to train a silo, drawn by the seed; 0: all; not under sound accounting with add-remove"`
	Silos             int          `yaml:"silos,omitempty" jsonschema:"minimum=1,maximum=100000" jsonschema_description:"rotated-mnist and cifar10-silos: how many silos share the pictures"`
	Mask              float64      `yaml:"mask,omitempty" jsonschema:"minimum=0,maximum=1" jsonschema_description:"rotated-mnist: probability of a white patch at every place of a silo's mask; 0: no masks"`
	MaskSize          int          `yaml:"mask_size,omitempty" jsonschema:"minimum=1,maximum=28" jsonschema_description:"rotated-mnist: side of a patch in pixels"`
	SiloClasses       int          `yaml:"silo_classes,omitempty" jsonschema:"minimum=1,maximum=10" jsonschema_description:"cifar10-silos: classes that every silo has"`
	Standardise       string       `yaml:"standardise,omitempty" jsonschema:"enum=silo,enum=public,enum=paid,enum=none" jsonschema_description:"silos of rows: with the silo's own training rows (not covered by privacy), with public constants, with noised moments of the silo's training rows that its target pays for, or not at all"`
	Centre            []float64    `yaml:"centre,omitempty" jsonschema_description:"silos of rows, standardise public: what is subtracted from every feature; paid: the middle of its public range; empty: the documented ranges of school"`
	Scale             []float64    `yaml:"scale,omitempty" jsonschema_description:"silos of rows, standardise public: what every feature is then divided by; paid: half the width of its public range; empty: the documented ranges of school"`
	Source            Source       `yaml:"source,omitempty" jsonschema_description:"table and pictures: where they lie"`
	Target            string       `yaml:"target,omitempty" jsonschema_description:"table: the column that is predicted"`
	Task              string       `yaml:"task,omitempty" jsonschema:"enum=number,enum=yes/no,enum=classes" jsonschema_description:"table: what the target is"`
	Classes           []Cell       `yaml:"classes,omitempty" jsonschema_description:"table: the target's public list of values, for yes/no first no, then yes (empty: no/yes, n/y, false/true or 0/1); pictures: the names of the class folders"`
	TargetRange       []float64    `yaml:"target_range,omitempty" jsonschema_description:"table, task number: lowest and highest public value of the target; what lies outside is moved to the nearer one"`
	TargetMissing     string       `yaml:"target_missing,omitempty" jsonschema:"enum=refuse,enum=leave-out" jsonschema_description:"table: a row without a target is a fault (the default), or is left out"`
	Features          []Column     `yaml:"features,omitempty" jsonschema_description:"table: the columns that the target is predicted from, in the order that all participants share"`
	Sensitive         []Column     `yaml:"sensitive,omitempty" jsonschema_description:"table: columns with sensitive attributes and their public values, for the fairness audit; a feature only if it stands there too"`
	Test              TestPart     `yaml:"test,omitempty" jsonschema_description:"table and pictures: which examples are held out, instead of a share"`
	NotPublic         []string     `yaml:"not_public,omitempty" jsonschema_description:"table and pictures: keys of this file whose values were taken from the data; while there are any, privacy claims are heuristic"`
	Height            int          `yaml:"height,omitempty" jsonschema:"minimum=1,maximum=4096" jsonschema_description:"pictures: public height in pixels; others are scaled to it"`
	Width             int          `yaml:"width,omitempty" jsonschema:"minimum=1,maximum=4096" jsonschema_description:"pictures: public width in pixels"`
	Channels          int          `yaml:"channels,omitempty" jsonschema:"minimum=1,maximum=3" jsonschema_description:"pictures: 1 (grey) or 3 (colour)"`
}

// Distribution is of a real value.
type Distribution struct {
	Kind string  `yaml:"kind" jsonschema:"enum=uniform,enum=normal" jsonschema_description:"uniform on [low, high), or normal"`
	Low  float64 `yaml:"low" jsonschema_description:"of the uniform distribution"`
	High float64 `yaml:"high" jsonschema_description:"of the uniform distribution"`
	Mean float64 `yaml:"mean" jsonschema_description:"of the normal distribution"`
	SD   float64 `yaml:"sd" jsonschema:"minimum=0" jsonschema_description:"standard deviation of the normal distribution"`
}

// Model describes what is trained.
type Model struct {
	Kind      string  `yaml:"kind" json:"kind" jsonschema:"enum=linear,enum=network" jsonschema_description:"linear: y = x·theta; network: layers, or one of the papers' networks by its name"`
	Name      string  `yaml:"name" json:"name,omitempty" jsonschema_description:"network: hospital, mnist, autoencoder, agnews, femnist, cross-silo-cifar, cross-silo-mnist or cross-silo-adni"`
	Layers    []Layer `yaml:"layers" json:"layers,omitempty" jsonschema_description:"network: its layers, if it has no name"`
	Intercept bool    `yaml:"intercept" json:"intercept" jsonschema_description:"linear: a constant term"`
	InitSD    float64 `yaml:"init_sd" json:"init_sd,omitempty" jsonschema:"minimum=0" jsonschema_description:"linear: hypotheses start at N(0, init_sd^2); networks start as PyTorch's do"`
}

// Layer describes one layer of a network.
type Layer struct {
	Kind     string  `yaml:"kind" json:"kind" registered:"layer" jsonschema_description:"what it does"`
	Units    int     `yaml:"units,omitempty" json:"units,omitempty" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"linear: outputs"`
	Channels int     `yaml:"channels,omitempty" json:"channels,omitempty" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"convolutions: output channels"`
	Kernel   int     `yaml:"kernel,omitempty" json:"kernel,omitempty" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"convolutions and pools: side of the window"`
	Stride   int     `yaml:"stride,omitempty" json:"stride,omitempty" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"0: 1, for pools the kernel"`
	Padding  int     `yaml:"padding,omitempty" json:"padding,omitempty" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"zeros around the input"`
	NoBias   bool    `yaml:"no_bias,omitempty" json:"no_bias,omitempty" jsonschema_description:"linear and convolutions: no constant terms"`
	Slope    float64 `yaml:"slope,omitempty" json:"slope,omitempty" jsonschema:"minimum=0,maximum=1" jsonschema_description:"leaky-relu: slope below 0; 0: 0.01"`
	Inner    []Layer `yaml:"inner,omitempty" json:"inner,omitempty" jsonschema_description:"residual: the layers whose result is added to the input"`
}

// Algorithm describes Algorithm 1 of the papers and its two special cases.
type Algorithm struct {
	Kind            string `yaml:"kind" registered:"method" jsonschema_description:"fedavg: one model for all; ifca: one for every cluster of participants; group-private: Algorithm 1 of the papers; local: everybody alone; finetune: fedavg, then alone; ditto, mocha, mr-mtl: everybody a model of its own, drawn to the others'"`
	Mode            string `yaml:"mode" jsonschema:"enum=paper,enum=sound" jsonschema_description:"paper: as the papers write it; sound: public radius, fixed rounds, last model"`
	Hypotheses      int    `yaml:"hypotheses" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"models kept by the server"`
	Rounds          int    `yaml:"rounds" jsonschema:"minimum=1,maximum=100000000" jsonschema_description:"rounds at most (sound mode: exactly)"`
	ClientsPerRound int    `yaml:"clients_per_round" jsonschema:"minimum=0,maximum=10000000" jsonschema_description:"clients asked in every round; 0: all"`
	Sampling        string `yaml:"sampling" jsonschema:"enum=uniform,enum=balanced" jsonschema_description:"uniform: afresh every round; balanced: shuffle all clients, take the next ones"`
	Empty           string `yaml:"empty" jsonschema:"enum=relocate,enum=keep,enum=split" jsonschema_description:"a hypothesis without updates: moved to the farthest released vector, left, or (silos) given half of another cluster"`
	IdleRounds      int    `yaml:"idle_rounds" jsonschema:"minimum=1,maximum=1000000" jsonschema_description:"rounds without an update before it is moved"`
	Local           Local  `yaml:"local" jsonschema_description:"training at the client"`
	Stop            Stop   `yaml:"stop" jsonschema_description:"when training ends, and what is returned"`

	Clustering     string    `yaml:"clustering,omitempty" jsonschema:"enum=k-means,enum=declared" jsonschema_description:"ifca, group-private: the server clusters releases that name no cluster, or participants name the one they chose"`
	Lambda         Lambda    `yaml:"lambda,omitempty" jsonschema:"oneof_type=string;number,pattern=^(auto|inf|[0-9.]+([eE][-+]?[0-9]+)?)$" jsonschema_description:"mr-mtl, ditto, mocha: strength of the regulariser; inf; auto (mr-mtl): set by the server from what was released already"`
	Prox           string    `yaml:"prox,omitempty" jsonschema:"enum=outside,enum=inside,enum=server" jsonschema_description:"the regulariser's gradient is added after the noise; clipped with every example's; or (mr-mtl) silos are drawn to the mean after the round"`
	FederatedShare float64   `yaml:"federated_share,omitempty" jsonschema:"exclusiveMinimum=0,maximum=1" jsonschema_description:"finetune: share of the rounds that are federated; then every silo goes on alone"`
	WarmStart      float64   `yaml:"warm_start,omitempty" jsonschema:"minimum=0,maximum=1" jsonschema_description:"mr-mtl, fedavg, local, finetune: share of the rounds in which silos first find clusters, as ifca does; 0: none"`
	Weights        string    `yaml:"weights,omitempty" jsonschema:"enum=counts,enum=equal" jsonschema_description:"what silos weigh in a mean: their number of examples, which is then public, or the same"`
	Selection      Selection `yaml:"selection,omitempty" jsonschema_description:"ifca and warm_start: how a silo chooses its cluster privately"`
}

// Local is the client's own training.
type Local struct {
	Epochs int     `yaml:"epochs" jsonschema:"minimum=1,maximum=1000000" jsonschema_description:"passes over the client's data"`
	Step   float64 `yaml:"step" jsonschema:"exclusiveMinimum=0" jsonschema_description:"step size of gradient descent"`
	Batch  int     `yaml:"batch" jsonschema:"minimum=0,maximum=1000000000" jsonschema_description:"examples in a batch; 0: all"`
	Limit  int     `yaml:"limit" jsonschema:"minimum=0,maximum=1000000000" jsonschema_description:"pictures that a client trains on in a round, drawn afresh; 0: all"`
	Loss   string  `yaml:"loss" jsonschema:"enum=squared-error,enum=half-squared-error,enum=rmse,enum=cross-entropy,enum=hinge,enum=focal" jsonschema_description:"whose gradient is followed: squared-error, half of it or its root (rmse) of values; cross-entropy of classes; focal: of classes, less of examples that are right already; hinge of 2 classes"`

	Remainder string  `yaml:"remainder" jsonschema:"enum=keep,enum=drop" jsonschema_description:"the last, smaller batch of a shuffled epoch is trained on, or left out"`
	Optimiser string  `yaml:"optimiser" jsonschema:"enum=sgd,enum=momentum,enum=adam" jsonschema_description:"how gradients move the model; momentum and adam start anew in every client's pass"`
	Momentum  float64 `yaml:"momentum" jsonschema:"minimum=0,exclusiveMaximum=1" jsonschema_description:"momentum: what is kept of the last step's velocity"`
	Beta1     float64 `yaml:"beta1" jsonschema:"minimum=0,exclusiveMaximum=1" jsonschema_description:"adam: what is kept of the mean gradient"`
	Beta2     float64 `yaml:"beta2" jsonschema:"minimum=0,exclusiveMaximum=1" jsonschema_description:"adam: what is kept of the mean squared gradient"`
	Schedule  string  `yaml:"schedule" jsonschema:"enum=constant,enum=linear,enum=cosine,enum=inverse-root" jsonschema_description:"step in round t of T (from 0): step; step*(1-t/T); step*(1+cos(pi*t/T))/2; step/sqrt(1+t)"`

	ClassWeights []float64 `yaml:"class_weights,omitempty" jsonschema_description:"cross-entropy, focal, hinge: public numbers, one a class, that every example's loss and gradient is multiplied by before it is clipped; figures stay unweighted"`
	FocalAlpha   float64   `yaml:"focal_alpha,omitempty" jsonschema:"minimum=0,exclusiveMaximum=1" jsonschema_description:"focal, 2 classes: weight of class 1, class 0 having the rest to 1; 0: 0.75"`
	FocalGamma   float64   `yaml:"focal_gamma,omitempty" jsonschema:"minimum=0,maximum=100" jsonschema_description:"focal: power of the probability of being wrong that an example's loss is multiplied by; 0: 2"`
}

// Stop says when training ends.
type Stop struct {
	Patience          int    `yaml:"patience" jsonschema:"minimum=0,maximum=100000000" jsonschema_description:"validations without improvement before training stops; 0: never"`
	Return            string `yaml:"return" jsonschema:"enum=best,enum=last" jsonschema_description:"which models are returned"`
	Every             int    `yaml:"every" jsonschema:"minimum=1,maximum=1000000" jsonschema_description:"validate after every so many rounds"`
	ValidationClients int    `yaml:"validation_clients" jsonschema:"minimum=0,maximum=10000000" jsonschema_description:"held-out clients asked in every round; 0: all"`
}

// Judge says what the models are judged by. Figures are known in simulation only: a
// real federation would have to pay for them.
type Judge struct {
	By       string   `yaml:"by" jsonschema:"enum=clients,enum=own,enum=test" jsonschema_description:"clients: clients that take no part in training, each with the model that fits it best; own: every participant's own model on its own held-out examples; test: the server's model on all held-out examples together"`
	Compare  []string `yaml:"compare,omitempty" jsonschema_description:"methods that the same file is trained with as well, each with a budget of its own, to be shown beside the run: local, fedavg"`
	Evaluate Evaluate `yaml:"evaluate,omitempty" jsonschema_description:"one more round after the last one, in which every participant that allows it releases noised counts of what its held-out examples say of the model it would use; empty: none"`
}

// Evaluate is a round of evaluation: a release, and paid for like one.
type Evaluate struct {
	Epsilon float64 `yaml:"epsilon,omitempty" jsonschema:"minimum=0" jsonschema_description:"what the release costs every participant by itself, for one person, at privacy.delta; 0: there is no such round"`
	Bins    int     `yaml:"bins,omitempty" jsonschema:"minimum=0,maximum=1000" jsonschema_description:"classes: equal bins of the probability, an even number; 0: 10"`
	Bound   float64 `yaml:"bound,omitempty" jsonschema:"minimum=0" jsonschema_description:"values: public bound; targets count as 0 to bound, errors up to bound; 0: 1"`
}

// Privacy says what a release may reveal.
type Privacy struct {
	Protects        string    `yaml:"protects" registered:"protection" jsonschema_description:"update: a participant's update, by metric privacy; example: single examples, by noise in every step; client: whole participants, by noise that the server adds; nothing"`
	NoiseMultiplier float64   `yaml:"noise_multiplier" jsonschema:"minimum=0" jsonschema_description:"update: nu, a release loses n/nu at its radius; example, client: the noise over the clip, if there is no epsilon"`
	Radius          float64   `yaml:"radius" jsonschema:"minimum=0" jsonschema_description:"sound mode: public radius C that every update is clipped to"`
	RadiusDecay     float64   `yaml:"radius_decay" jsonschema:"exclusiveMinimum=0,maximum=1" jsonschema_description:"sound mode: C is multiplied by it every round"`
	RadiusFloor     float64   `yaml:"radius_floor" jsonschema:"exclusiveMinimum=0" jsonschema_description:"paper mode: the smallest radius, so that an update of length 0 is noised too"`
	Sanitise        string    `yaml:"sanitise" jsonschema:"enum=update,enum=layers" jsonschema_description:"update: one radius for all of an update; layers: every layer of a network has a radius and noise of its own"`
	LayerShares     []float64 `yaml:"layer_shares,omitempty" jsonschema_description:"sound mode, sanitise layers: every layer's public radius as a share of radius, in the network's order; empty: the root of its share of the parameters"`
	Ceiling         *float64  `yaml:"ceiling" jsonschema:"oneof_type=number;null,exclusiveMinimum=0" jsonschema_description:"a client declines a release that would take its total above this; null: none"`
	Accounting      string    `yaml:"accounting" jsonschema:"enum=paper,enum=sound" jsonschema_description:"follows algorithm.mode; setting either sets both"`
	Noise           string    `yaml:"noise" jsonschema:"enum=simulated,enum=exact,enum=exact-seeded" jsonschema_description:"simulated: fast, repeatable floats; exact: system entropy on an integer lattice; exact-seeded: the same lattice from the seed, to compare a simulation with a federation"`

	Epsilon          float64      `yaml:"epsilon" jsonschema:"minimum=0" jsonschema_description:"example, client: every participant's target; 0: the noise is given"`
	Delta            float64      `yaml:"delta,omitempty" jsonschema:"exclusiveMinimum=0,exclusiveMaximum=1" jsonschema_description:"example, client: of the target"`
	Clip             float64      `yaml:"clip,omitempty" jsonschema:"exclusiveMinimum=0" jsonschema_description:"example: largest norm of one example's gradient"`
	UpdateClip       float64      `yaml:"update_clip,omitempty" jsonschema:"exclusiveMinimum=0" jsonschema_description:"client: largest norm of a participant's update"`
	Relation         string       `yaml:"relation,omitempty" jsonschema:"enum=add-remove,enum=replace-one" jsonschema_description:"example: who counts as a neighbour; replace-one leaves the number of examples public"`
	PublicSize       int          `yaml:"public_size,omitempty" jsonschema:"minimum=0,maximum=1000000000" jsonschema_description:"example, sound, add-remove: declared size that rate and steps follow from; 0: not declared"`
	RecordsPerPerson int          `yaml:"records_per_person,omitempty" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"example: records that one person may have; the target then holds for a person"`
	MomentsShare     float64      `yaml:"moments_share,omitempty" jsonschema:"exclusiveMinimum=0,exclusiveMaximum=1" jsonschema_description:"data.standardise paid: epsilon of the moments by themselves, as a share of the silo's whole"`
	Silos            []SiloTarget `yaml:"silos,omitempty" jsonschema_description:"example: participants that have a target of their own"`
}

// Execution says how fast and how safe from interruption; it changes no result.
type Execution struct {
	Workers           int     `yaml:"workers" jsonschema:"minimum=0,maximum=4096" jsonschema_description:"goroutines that train; 0: one a core"`
	CheckpointSeconds float64 `yaml:"checkpoint_seconds" jsonschema:"minimum=0" jsonschema_description:"least time between two checkpoints"`
}
