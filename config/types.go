// Package config is the run file: its types, strict loading with positions, schema and hash.
package config

// Run is a whole run file. Ranges stand in the tags: the loader and the
// published schema read the same ones.
type Run struct {
	Name      string    `yaml:"name" jsonschema:"pattern=^[A-Za-z0-9][A-Za-z0-9._-]*$,maxLength=64" jsonschema_description:"what the run is called; empty: as its method"`
	Seed      uint64    `yaml:"seed" jsonschema:"minimum=0" jsonschema_description:"everything random in a simulation follows from it"`
	Data      Data      `yaml:"data" jsonschema_description:"what is trained on"`
	Model     Model     `yaml:"model" jsonschema_description:"what is trained"`
	Algorithm Algorithm `yaml:"algorithm" jsonschema_description:"how it is trained"`
	Privacy   Privacy   `yaml:"privacy" jsonschema_description:"what a release may reveal"`
	Judge     Judge     `yaml:"judge" jsonschema_description:"what the models are judged by"`
	Run       Execution `yaml:"run" jsonschema_description:"speed only: nothing here changes a result, but a device rounds differently"`
}

// Data describes the clients: the synthetic linear federation, y = x·theta_g +
// shift_g + u, or real data. Keys of other kinds than the one
// named are faults, unless they have their default value: package data registers the
// kinds with their keys.
type Data struct {
	Kind              string       `yaml:"kind" registered:"data" jsonschema_description:"which data: synthetic ones are drawn from the seed, table, pictures and text are your own, the others are real data sets in the folder that --data or COTERIE_DATA names"`
	Users             int          `yaml:"users" jsonschema:"minimum=1,maximum=10000000" jsonschema_description:"clients that train"`
	ValidationUsers   int          `yaml:"validation_users" jsonschema:"minimum=1,maximum=10000000" only:"judge.by=clients|test" jsonschema_description:"further clients that are held out, to judge by"`
	Samples           int          `yaml:"samples" jsonschema:"minimum=1,maximum=1000000" jsonschema_description:"rows that each client holds (adult, compas and wikitext: at most)"`
	Groups            int          `yaml:"groups" jsonschema:"minimum=0,maximum=1000" jsonschema_description:"groups of clients, each with parameters of its own; 0: as many as parameters has rows"`
	Dimension         int          `yaml:"dimension" jsonschema:"minimum=0,maximum=100000" jsonschema_description:"features of a row; 0: as many as parameters has columns"`
	Parameters        [][]float64  `yaml:"parameters" jsonschema_description:"the true theta of every group, one row each; empty: the papers' two for 2 groups in 2 dimensions, otherwise drawn from N(0, 25)"`
	Shares            []float64    `yaml:"shares" jsonschema_description:"share of the clients in every group, adding up to 1; empty: equal shares"`
	Shift             []float64    `yaml:"shift" jsonschema_description:"constant that is added to y in every group; empty: none"`
	X                 Distribution `yaml:"x" jsonschema_description:"how every feature is drawn"`
	Noise             Distribution `yaml:"noise" jsonschema_description:"how u in y = x·theta + shift + u is drawn"`
	Year              int          `yaml:"year" jsonschema:"minimum=2011,maximum=2016" jsonschema_description:"fiscal year of the file: 2011 (six states) or 2016"`
	DRGs              []int        `yaml:"drgs" jsonschema_description:"codes of the conditions whose costs are predicted, in the order of their index"`
	Index             string       `yaml:"index" jsonschema:"enum=listing,enum=code" jsonschema_description:"whether the conditions are numbered as drgs lists them, or by their code"`
	Set               string       `yaml:"set" jsonschema:"enum=unipen,enum=mnist,enum=femnist" jsonschema_description:"whose handwriting; femnist: LEAF's files in the folder femnist"`
	Rotated           float64      `yaml:"rotated" jsonschema:"minimum=0,maximum=1" jsonschema_description:"probability that a writer's pictures are rotated by 90 degrees"`
	TrainShare        float64      `yaml:"train_share" jsonschema:"exclusiveMinimum=0,maximum=1" jsonschema_description:"share of the clients that train; the others are held out, to judge by"`
	Ink               string       `yaml:"ink,omitempty" jsonschema:"enum=dark,enum=light" jsonschema_description:"dark ink on white, as LEAF has it, or light on black, as MNIST has it, which trains faster; empty: dark"`
	Partition         string       `yaml:"partition,omitempty" jsonschema:"enum=random,enum=sex,enum=race,enum=central,enum=region,enum=own" jsonschema_description:"whether rows are dealt out to clients at random, or so that all rows of a client have the same sex or race; of a population, whether one client holds all persons (central), every region's authority its own (region), or every participant brings files of its own (own); empty: random, or central"`
	SensitiveFeatures bool         `yaml:"sensitive_features,omitempty" jsonschema_description:"whether sex and race are features, too"`
	TestShare         float64      `yaml:"test_share,omitempty" jsonschema:"minimum=0,exclusiveMaximum=1" jsonschema_description:"share of every training client's own examples that is held out, each by a hash of itself that the seed keys; 0: none (silos must hold some out)"`
	TrainLimit        int          `yaml:"train_limit,omitempty" jsonschema:"minimum=0,maximum=1000000000" jsonschema_description:"most examples that a silo trains on, drawn by the seed; 0: all; must be 0 under sound accounting with the relation add-remove"`
	Silos             int          `yaml:"silos,omitempty" jsonschema:"minimum=1,maximum=100000" jsonschema_description:"how many silos share the pictures"`
	Mask              float64      `yaml:"mask,omitempty" jsonschema:"minimum=0,maximum=1" jsonschema_description:"probability of a white patch at every place of a silo's mask; 0: no masks"`
	MaskSize          int          `yaml:"mask_size,omitempty" jsonschema:"minimum=1,maximum=28" jsonschema_description:"side of a patch in pixels, where mask is above 0"`
	SiloClasses       int          `yaml:"silo_classes,omitempty" jsonschema:"minimum=1,maximum=10" jsonschema_description:"classes that every silo has pictures of"`
	Standardise       string       `yaml:"standardise,omitempty" jsonschema:"enum=silo,enum=public,enum=paid,enum=none" jsonschema_description:"how features are scaled: with the silo's own training rows (not covered by privacy), with public constants, with noised moments of those rows that the silo's target pays for, or not at all"`
	Centre            []float64    `yaml:"centre,omitempty" only:"data.standardise=public|paid" jsonschema_description:"one number a feature: public, what is subtracted from it; paid, the middle of its public range; empty: the documented ranges of school"`
	Scale             []float64    `yaml:"scale,omitempty" only:"data.standardise=public|paid" jsonschema_description:"one number a feature: public, what it is then divided by; paid, half the width of its public range; empty: the documented ranges of school"`
	Source            Source       `yaml:"source,omitempty" jsonschema_description:"where the rows, pictures or texts lie; local, so that a federation's plan has none"`
	Target            string       `yaml:"target,omitempty" jsonschema_description:"the column that is predicted"`
	Task              string       `yaml:"task,omitempty" jsonschema:"enum=number,enum=yes/no,enum=classes,enum=reconstruct" jsonschema_description:"what the target is: of a table a number, one of two answers, or one of several classes; of fashion-mnist classes, or reconstruct, the picture itself; empty: its classes"`
	Classes           []Cell       `yaml:"classes,omitempty" jsonschema_description:"for a table the target's public list of values, for yes/no first no, then yes (empty: no/yes, n/y, false/true or 0/1); for pictures the names of the class folders"`
	TargetRange       []float64    `yaml:"target_range,omitempty" only:"data.task=number" jsonschema_description:"lowest and highest public value of the target; what lies outside is moved to the nearer one"`
	TargetMissing     string       `yaml:"target_missing,omitempty" jsonschema:"enum=refuse,enum=leave-out" jsonschema_description:"whether a row without a target is a fault, or is left out; empty: a fault"`
	Features          []Column     `yaml:"features,omitempty" jsonschema_description:"the columns that the target is predicted from, in the order that all participants share"`
	Sensitive         []Column     `yaml:"sensitive,omitempty" jsonschema_description:"columns with sensitive attributes and their public values, for the fairness audit; a feature only if it stands there, too"`
	Test              TestPart     `yaml:"test,omitempty" jsonschema_description:"which examples are held out, instead of a share"`
	Projection        string       `yaml:"projection,omitempty" jsonschema_description:"folder of a run with algorithm.kind pca on the same columns, seen from this file's folder: rows are taken to its components; what that run cost is not in this one's number; empty: none"`
	NotPublic         []string     `yaml:"not_public,omitempty" jsonschema_description:"keys of this file whose values were taken from the data; while there are any, privacy claims are heuristic; empty: none"`
	Height            int          `yaml:"height,omitempty" jsonschema:"minimum=1,maximum=4096" jsonschema_description:"public height of a picture in pixels; others are scaled to it"`
	Width             int          `yaml:"width,omitempty" jsonschema:"minimum=1,maximum=4096" jsonschema_description:"public width of a picture in pixels; others are scaled to it"`
	Channels          int          `yaml:"channels,omitempty" jsonschema:"minimum=1,maximum=3" jsonschema_description:"1 for grey pictures, 3 for colour"`
	Vocabulary        int          `yaml:"vocabulary,omitempty" jsonschema:"minimum=256,maximum=1048576" jsonschema_description:"words that text is cut into: the 256 bytes, and what the first pairs of data.merges make"`
	Context           int          `yaml:"context,omitempty" jsonschema:"minimum=2,maximum=65536" jsonschema_description:"words of one example: text is cut every so many words"`
	Merges            string       `yaml:"merges,omitempty" jsonschema_description:"file of pairs that words are made of, in the format of GPT-2's vocab.bpe, seen from this file's folder; it must be public, or stand in data.not_public; empty: GPT-2's, gpt2-bpe/vocab.bpe.gz in the folder of real data"`
	Persons           int          `yaml:"persons,omitempty" jsonschema:"minimum=0,maximum=100000000" jsonschema_description:"persons of a population that is generated in memory, instead of being read from data.source.path; the last household is whole; 0: it is read"`
	Inputs            string       `yaml:"inputs,omitempty" jsonschema:"enum=pooled,enum=authors,enum=authors-node,enum=authors-activity,enum=authors-activity-location" jsonschema_description:"what a model reads of a person: pooled, seventeen numbers, of which sums over all contacts; authors, as the thesis has it, the person and some neighbours one after another with time, length and place of the contact, scaled by the population, so that nothing is proved (authors-node: without the contact; authors-activity: with time, length and what was done; authors-activity-location: with all of it); empty: pooled"`
	Neighbours        int          `yaml:"neighbours,omitempty" jsonschema:"minimum=0,maximum=1000" only:"data.inputs=authors|authors-node|authors-activity|authors-activity-location" jsonschema_description:"neighbours in a person's inputs, drawn once; 0: 20"`
	PopulationSeed    uint64       `yaml:"population_seed,omitempty" jsonschema_description:"what a generated population follows from; the run's own seed changes nothing in it"`
	Households        string       `yaml:"households,omitempty" jsonschema_description:"whom a generated population is drawn from: published (the challenge's, which must be in the data folder) or invented; without it the published ones if they are there, or else invented ones"`
}

// Distribution is of a real value.
type Distribution struct {
	Kind string  `yaml:"kind" jsonschema:"enum=uniform,enum=normal" jsonschema_description:"uniform on [low, high), or normal"`
	Low  float64 `yaml:"low" only:".kind=uniform" jsonschema_description:"least value"`
	High float64 `yaml:"high" only:".kind=uniform" jsonschema_description:"what all values stay below"`
	Mean float64 `yaml:"mean" only:".kind=normal" jsonschema_description:"mean of the values"`
	SD   float64 `yaml:"sd" jsonschema:"minimum=0" only:".kind=normal" jsonschema_description:"standard deviation of the values"`
}

// Model describes what is trained.
type Model struct {
	Kind      string  `yaml:"kind" json:"kind" jsonschema:"enum=linear,enum=network,enum=transformer,enum=projection" jsonschema_description:"what computes the answer: linear, y = x·theta, or its softmax for classes; network, layers, or a network by its name; transformer, a language model of GPT-2's build; projection, the principal components that the methods pca and pca-local find"`
	Name      string  `yaml:"name" json:"name,omitempty" only:"model.kind=network" jsonschema_description:"one of the papers' networks, hospital, mnist, autoencoder, agnews, femnist, cross-silo-cifar, cross-silo-mnist or cross-silo-adni, or resnet8; empty: layers describe it"`
	Layers    []Layer `yaml:"layers" json:"layers,omitempty" only:"model.kind=network" jsonschema_description:"the network's layers, from the input on, if it has no name"`
	Blocks    int     `yaml:"blocks,omitempty" json:"blocks,omitempty" jsonschema:"minimum=0,maximum=1000" only:"model.kind=transformer" jsonschema_description:"blocks of a transformer, each of which looks back and then thinks"`
	Width     int     `yaml:"width,omitempty" json:"width,omitempty" jsonschema:"minimum=0,maximum=65536" only:"model.kind=transformer" jsonschema_description:"values of a word within a transformer"`
	Heads     int     `yaml:"heads,omitempty" json:"heads,omitempty" jsonschema:"minimum=0,maximum=65536" only:"model.kind=transformer" jsonschema_description:"heads of a transformer's attention; they divide the width"`
	Start     string  `yaml:"start,omitempty" json:"-" only:"model.kind=network|transformer" jsonschema_description:"file or folder that training starts from, seen from this file's folder: safetensors in GPT-2's names and layouts (transformer), or the folder of a run with one model of the same layers; what it was trained on is not covered; empty: a drawn start"`
	Intercept bool    `yaml:"intercept" json:"intercept" only:"model.kind=linear" jsonschema_description:"whether there is a constant term"`
	Bias      float64 `yaml:"bias,omitempty" json:"bias,omitempty" only:"model.kind=linear;data.kind=pandemic" jsonschema_description:"what the weight of the constant starts with, the logarithm of how rare illness is taken to be; a public number"`
	InitSD    float64 `yaml:"init_sd" json:"init_sd,omitempty" jsonschema:"minimum=0" only:"model.kind=linear" jsonschema_description:"standard deviation of the values that models start with; networks start as PyTorch's do"`
}

// Layer describes one layer of a network.
type Layer struct {
	Kind       string  `yaml:"kind" json:"kind" registered:"layer" jsonschema_description:"what the layer does"`
	Units      int     `yaml:"units,omitempty" json:"units,omitempty" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"number of outputs; of an embedding, values of a word"`
	Channels   int     `yaml:"channels,omitempty" json:"channels,omitempty" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"number of output channels"`
	Kernel     int     `yaml:"kernel,omitempty" json:"kernel,omitempty" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"side of the window; 0 (mean-pool): all of the picture"`
	Stride     int     `yaml:"stride,omitempty" json:"stride,omitempty" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"how far the window moves; 0: by 1, in pools by the kernel"`
	Padding    int     `yaml:"padding,omitempty" json:"padding,omitempty" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"width of the border of zeros around the input"`
	NoBias     bool    `yaml:"no_bias,omitempty" json:"no_bias,omitempty" jsonschema_description:"whether constant terms are left out"`
	Slope      float64 `yaml:"slope,omitempty" json:"slope,omitempty" jsonschema:"minimum=0,maximum=1" jsonschema_description:"slope below 0; 0: 0.01"`
	Groups     int     `yaml:"groups,omitempty" json:"groups,omitempty" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"groups of channels that are normalised together, each by its own mean and spread; 0: the most that divide the channels, up to 32"`
	Vocabulary int     `yaml:"vocabulary,omitempty" json:"vocabulary,omitempty" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"number of words: values of a row are words, whole numbers from 0 to below it"`
	Each       bool    `yaml:"each,omitempty" json:"each,omitempty" jsonschema_description:"whether every place of the input, such as a word, is taken by itself, all with the same weights"`
	Heads      int     `yaml:"heads,omitempty" json:"heads,omitempty" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"parts of the channels that look back at earlier places by themselves"`
	SD         float64 `yaml:"sd,omitempty" json:"sd,omitempty" jsonschema:"minimum=0" jsonschema_description:"standard deviation of the normal weights that training starts from, with constant terms of 0; 0: PyTorch's default"`
	Inner      []Layer `yaml:"inner,omitempty" json:"inner,omitempty" jsonschema_description:"layers, with the same keys as these, whose result is added to the input; of words, those between the words' vectors and the answer"`
	Shortcut   []Layer `yaml:"shortcut,omitempty" json:"shortcut,omitempty" jsonschema_description:"layers, with the same keys as these, that the input goes through before the inner layers' result is added to it, such as a convolution with a stride that makes its shape theirs; empty: it is added as it is"`
}

// Algorithm describes Algorithm 1 of the papers and its two special cases.
type Algorithm struct {
	Kind            string `yaml:"kind" registered:"method" jsonschema_description:"the method: fedavg, one model for all; ifca, one for every cluster of participants; group-private, Algorithm 1 of the papers; local, everybody alone; finetune, fedavg, then alone; ditto, mocha and mr-mtl, everybody a model of its own, drawn to the others'; pca, principal components of everybody's examples together; pca-local, of everybody's alone"`
	Mode            string `yaml:"mode" jsonschema:"enum=paper,enum=sound" jsonschema_description:"how strictly privacy is taken: paper, as the papers write it; sound, as far as a proof goes (public radius, fixed rounds, last model)"`
	Hypotheses      int    `yaml:"hypotheses" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"models that the server keeps, one a cluster; without clusters 1"`
	Rounds          int    `yaml:"rounds" jsonschema:"minimum=1,maximum=100000000" jsonschema_description:"rounds that are made at most (sound mode: exactly)"`
	ClientsPerRound int    `yaml:"clients_per_round" jsonschema:"minimum=0,maximum=10000000" jsonschema_description:"clients asked in every round; 0: all"`
	Sampling        string `yaml:"sampling" jsonschema:"enum=uniform,enum=balanced" jsonschema_description:"who is asked: uniform, drawn afresh every round; balanced, all clients are shuffled and the next ones taken"`
	Empty           string `yaml:"empty" jsonschema:"enum=relocate,enum=keep,enum=split" jsonschema_description:"what becomes of a model without updates: relocate moves it to the farthest released vector, keep leaves it, split (declared clusters) gives it half of another cluster"`
	IdleRounds      int    `yaml:"idle_rounds" jsonschema:"minimum=1,maximum=1000000" only:"algorithm.empty=relocate" jsonschema_description:"rounds without an update before a model is moved"`
	Local           Local  `yaml:"local" jsonschema_description:"training at the client"`
	Stop            Stop   `yaml:"stop" jsonschema_description:"when training ends, and what is returned"`

	ServerMomentum float64   `yaml:"server_momentum,omitempty" jsonschema:"minimum=0,exclusiveMaximum=1" jsonschema_description:"what is kept of the common model's last step, once the server has noised the mean of updates: it reads released values alone and costs nothing; 0: nothing"`
	Components     int       `yaml:"components,omitempty" jsonschema:"minimum=0,maximum=100000" jsonschema_description:"directions that a principal component analysis keeps, those of the largest variance first; 0: all, at most 50"`
	Clustering     string    `yaml:"clustering,omitempty" jsonschema:"enum=k-means,enum=declared" jsonschema_description:"who finds clusters: k-means, the server, among releases that name none; declared, the participants, who name the one that they chose"`
	Lambda         Lambda    `yaml:"lambda,omitempty" jsonschema:"oneof_type=string;number,pattern=^(auto|inf|[0-9.]+([eE][-+]?[0-9]+)?)$" jsonschema_description:"strength with which models are drawn to the common one; mr-mtl also takes inf, and auto: set by the server from what was released already"`
	Prox           string    `yaml:"prox,omitempty" jsonschema:"enum=outside,enum=inside,enum=server" jsonschema_description:"where lambda's gradient enters: outside, after clipping and noise; inside (protects example), clipped with every example's; server (mr-mtl), models are drawn to the mean after the round"`
	FederatedShare float64   `yaml:"federated_share,omitempty" jsonschema:"exclusiveMinimum=0,maximum=1" jsonschema_description:"share of the rounds that are federated; then every silo goes on alone"`
	WarmStart      float64   `yaml:"warm_start,omitempty" jsonschema:"minimum=0,maximum=1" jsonschema_description:"share of the rounds in which silos first find clusters, as ifca does; 0: none"`
	Weights        string    `yaml:"weights,omitempty" jsonschema:"enum=counts,enum=equal" jsonschema_description:"what participants weigh in a mean: their number of examples, which is then public (node, sound: the declared one, privacy.public_size), or all the same"`
	Selection      Selection `yaml:"selection,omitempty" jsonschema_description:"how a participant chooses its cluster, where there are several"`
	Robust         string    `yaml:"robust,omitempty" jsonschema:"enum=median,enum=trimmed-mean,enum=krum,enum=geometric-median" jsonschema_description:"what takes the place of the mean of releases, some of which may be forged: median and trimmed-mean, coordinate by coordinate; krum, the one release with the nearest neighbours; geometric-median, the point with the least sum of distances; empty: the mean"`
	RobustShare    float64   `yaml:"robust_share,omitempty" jsonschema:"minimum=0,exclusiveMaximum=0.5" only:"algorithm.robust=trimmed-mean|krum" jsonschema_description:"share of releases that may be forged: trimmed-mean leaves out as many at either end, krum counts on them; 0: 0.2"`
}

// Local is the client's own training.
type Local struct {
	Epochs int     `yaml:"epochs" jsonschema:"minimum=1,maximum=1000000" jsonschema_description:"passes over the client's data in a round"`
	Step   float64 `yaml:"step" jsonschema:"exclusiveMinimum=0" jsonschema_description:"step size of gradient descent"`
	Batch  int     `yaml:"batch" jsonschema:"minimum=0,maximum=1000000000" jsonschema_description:"examples in a batch; 0: all"`
	Limit  int     `yaml:"limit" jsonschema:"minimum=0,maximum=1000000000" jsonschema_description:"pictures that a client trains on in a round, drawn afresh; 0: all; rows are all taken"`
	Loss   string  `yaml:"loss" jsonschema:"enum=squared-error,enum=half-squared-error,enum=rmse,enum=cross-entropy,enum=hinge,enum=focal,enum=next-word" jsonschema_description:"whose gradient is followed: of values, squared-error, half of it, or its root (rmse); of classes, cross-entropy, or focal, which counts less what is right already; of 2 classes, hinge; of words, next-word, the mean cross entropy of the word that comes next"`

	Steps        int     `yaml:"steps,omitempty" jsonschema:"minimum=0,maximum=100000000" jsonschema_description:"steps that a client makes in a round, instead of whole epochs; 0: epochs say how many"`
	StepDecay    float64 `yaml:"step_decay,omitempty" jsonschema:"minimum=0,maximum=1" jsonschema_description:"after every step of a round the step size is multiplied by exp(-step_decay); in central, and with protects example, it goes on from round to round: a public schedule; 0: none"`
	Remainder    string  `yaml:"remainder" jsonschema:"enum=keep,enum=drop" jsonschema_description:"whether the last, smaller batch of a shuffled epoch is trained on or left out"`
	Optimiser    string  `yaml:"optimiser" jsonschema:"enum=sgd,enum=momentum,enum=adam,enum=adamw" jsonschema_description:"how gradients move the model; adamw is adam that also shrinks it; momentum and both start anew in every client's pass, but in central they go on"`
	Momentum     float64 `yaml:"momentum" jsonschema:"minimum=0,exclusiveMaximum=1" only:"algorithm.local.optimiser=momentum" jsonschema_description:"what is kept of the last step's velocity"`
	Beta1        float64 `yaml:"beta1" jsonschema:"minimum=0,exclusiveMaximum=1" only:"algorithm.local.optimiser=adam|adamw" jsonschema_description:"what is kept of the mean gradient"`
	Beta2        float64 `yaml:"beta2" jsonschema:"minimum=0,exclusiveMaximum=1" only:"algorithm.local.optimiser=adam|adamw" jsonschema_description:"what is kept of the mean squared gradient"`
	WeightDecay  float64 `yaml:"weight_decay,omitempty" jsonschema:"minimum=0,maximum=1" only:"algorithm.local.optimiser=adamw" jsonschema_description:"in every step all parameters are shrunk by this share of the step size; 0: not"`
	WarmUp       int     `yaml:"warm_up,omitempty" jsonschema:"minimum=0,maximum=100000000" jsonschema_description:"steps in which the step size rises to what it is, in a straight line from 0; where optimisers start anew, so does it; 0: none"`
	GradientNorm float64 `yaml:"gradient_norm,omitempty" jsonschema:"minimum=0" jsonschema_description:"a step's whole gradient that is longer is scaled to this length; it limits what single examples do, but protects none; 0: any length"`
	Schedule     string  `yaml:"schedule" jsonschema:"enum=constant,enum=linear,enum=cosine,enum=inverse-root" jsonschema_description:"step size in round t of T, from 0: step; step*(1-t/T); step*(1+cos(pi*t/T))/2; step/sqrt(1+t)"`

	ClassWeights []float64 `yaml:"class_weights,omitempty" only:"algorithm.local.loss=cross-entropy|focal|hinge" jsonschema_description:"public numbers, one a class, that every example's loss and gradient is multiplied by before it is clipped; figures stay unweighted; empty: 1 each"`
	FocalAlpha   float64   `yaml:"focal_alpha,omitempty" jsonschema:"minimum=0,exclusiveMaximum=1" only:"algorithm.local.loss=focal" jsonschema_description:"weight of class 1 of 2, class 0 having the rest to 1; 0: 0.75"`
	FocalGamma   float64   `yaml:"focal_gamma,omitempty" jsonschema:"minimum=0,maximum=100" only:"algorithm.local.loss=focal" jsonschema_description:"power of the probability of being wrong that an example's loss is multiplied by; 0: 2"`
}

// Stop says when training ends.
type Stop struct {
	Patience          int    `yaml:"patience" jsonschema:"minimum=0,maximum=100000000" jsonschema_description:"judgements without improvement before training stops; 0: never"`
	Return            string `yaml:"return" jsonschema:"enum=best,enum=last" jsonschema_description:"whether the models of the best judgement or of the last round are returned"`
	Every             int    `yaml:"every" jsonschema:"minimum=1,maximum=1000000" jsonschema_description:"rounds between two judgements"`
	ValidationClients int    `yaml:"validation_clients" jsonschema:"minimum=0,maximum=10000000" only:"judge.by=clients" jsonschema_description:"held-out clients asked at every judgement; 0: all"`
}

// Judge says what the models are judged by. Figures are known in simulation only: a
// real federation would have to pay for them.
type Judge struct {
	By       string   `yaml:"by" jsonschema:"enum=clients,enum=own,enum=test" jsonschema_description:"whose examples judge: clients, those of clients that take no part in training, each with the model that fits it best; own, every participant's own held-out ones with its own model; test, all held-out ones together with the server's model"`
	Compare  []string `yaml:"compare,omitempty" jsonschema_description:"other methods that the same file is trained with as well, each with a budget of its own, to be shown beside the run, such as local and fedavg; empty: none"`
	Hostile  Hostile  `yaml:"hostile,omitempty" jsonschema_description:"what if some clients lie? Simulated: they take part in training and forge what they send; empty: nobody does"`
	Evaluate Evaluate `yaml:"evaluate,omitempty" jsonschema_description:"one more round after the last one, in which every participant that allows it releases noised counts of what its held-out examples say of the model it would use; empty: none"`
}

// Hostile are clients of a simulation that lie.
type Hostile struct {
	Attack string  `yaml:"attack,omitempty" jsonschema:"enum=sign-flip,enum=scale,enum=label-flip" jsonschema_description:"how they lie: sign-flip, their update turned round; scale, their update times factor; label-flip, honest training on turned labels"`
	Share  float64 `yaml:"share,omitempty" jsonschema:"minimum=0,exclusiveMaximum=1" jsonschema_description:"share of the clients that lie, drawn by the seed"`
	Factor float64 `yaml:"factor,omitempty" jsonschema:"minimum=0" only:"judge.hostile.attack=sign-flip|scale" jsonschema_description:"what the forged update is multiplied by; 0: 1 (scale: 10)"`
}

// Evaluate is a round of evaluation: a release, and paid for like one.
type Evaluate struct {
	Epsilon float64 `yaml:"epsilon,omitempty" jsonschema:"minimum=0" jsonschema_description:"what the release costs every participant by itself, for one person, at privacy.delta; 0: there is no such round"`
	Bins    int     `yaml:"bins,omitempty" jsonschema:"minimum=0,maximum=1000" jsonschema_description:"for classes: equal bins of the probability, an even number; 0: 10"`
	Bound   float64 `yaml:"bound,omitempty" jsonschema:"minimum=0" jsonschema_description:"for values: public bound; targets count as 0 to bound, errors up to bound; 0: 1"`
}

// Privacy says what a release may reveal.
type Privacy struct {
	Protects        string    `yaml:"protects" registered:"protection" jsonschema_description:"what is protected: update, a participant's update, by metric privacy; example, single examples, by noise in every step; client, whole participants, by noise that the server adds; nothing"`
	NoiseMultiplier float64   `yaml:"noise_multiplier" jsonschema:"minimum=0" jsonschema_description:"how much noise: for update nu, so that a release loses n/nu at its radius; for example and client its standard deviation over the clip, where epsilon is 0"`
	Radius          float64   `yaml:"radius" jsonschema:"minimum=0" only:"algorithm.mode=sound" jsonschema_description:"public radius C that every update is clipped to"`
	RadiusDecay     float64   `yaml:"radius_decay" jsonschema:"exclusiveMinimum=0,maximum=1" only:"algorithm.mode=sound" jsonschema_description:"what C is multiplied by every round"`
	RadiusFloor     float64   `yaml:"radius_floor" jsonschema:"exclusiveMinimum=0" only:"algorithm.mode=paper" jsonschema_description:"the smallest radius that noise is scaled to, so that an update of length 0 is noised, too"`
	Sanitise        string    `yaml:"sanitise" jsonschema:"enum=update,enum=layers" jsonschema_description:"what has a radius and noise of its own: update, all of an update at once; layers, every layer of a network"`
	LayerShares     []float64 `yaml:"layer_shares,omitempty" only:"algorithm.mode=sound;privacy.sanitise=layers" jsonschema_description:"every layer's public radius as a share of radius, in the network's order; empty: the root of its share of the parameters"`
	Ceiling         *float64  `yaml:"ceiling" jsonschema:"oneof_type=number;null,exclusiveMinimum=0" jsonschema_description:"a client declines a release that would take its total above this; null: none"`
	Accounting      string    `yaml:"accounting" jsonschema:"enum=paper,enum=sound" jsonschema_description:"another name of algorithm.mode: setting either sets both"`
	Noise           string    `yaml:"noise" jsonschema:"enum=simulated,enum=exact,enum=exact-seeded" also:"judge.evaluate" jsonschema_description:"how noise is drawn: simulated, as fast and repeatable floats; exact, from system entropy on an integer lattice; exact-seeded, on the same lattice from the seed, to compare a simulation with a federation"`

	Epsilon          float64      `yaml:"epsilon" jsonschema:"minimum=0" jsonschema_description:"every participant's target; 0: noise_multiplier gives the noise"`
	Delta            float64      `yaml:"delta,omitempty" jsonschema:"exclusiveMinimum=0,exclusiveMaximum=1" also:"judge.evaluate" jsonschema_description:"delta of the target (example, client), and of judge.evaluate's release"`
	Runs             int          `yaml:"runs,omitempty" jsonschema:"minimum=0,maximum=1000000" jsonschema_description:"runs like this one that share the target, such as those of a grid: the noise is that at which all of them together keep epsilon (docs/tuning.md); 0: 1"`
	Run              int          `yaml:"run,omitempty" jsonschema:"minimum=0,maximum=1000000" jsonschema_description:"which of the runs that share the target this is, counted from 0: in simulation each draws batches and noise of its own from the seed, since what was noised alike could be subtracted"`
	Clip             float64      `yaml:"clip,omitempty" jsonschema:"exclusiveMinimum=0" jsonschema_description:"largest norm of one example's gradient (pca and pca-local: of the example itself); what is longer is shortened to it"`
	Clipping         Clipping     `yaml:"clipping,omitempty" jsonschema_description:"how the clip is found during training; empty: it stays as it is"`
	Sector           Sector       `yaml:"sector,omitempty" only:"algorithm.mode=sound;privacy.relation=replace-one" jsonschema_description:"what updates are brought into instead of a ball, under the relation replace-one; empty: a ball"`
	Recentre         string       `yaml:"recentre,omitempty" jsonschema:"enum=last,enum=mean" jsonschema_description:"point around which updates are clipped: last, the last released mean of updates; mean, the running mean of all released ones; in the first round there is none; empty: always 0"`
	UpdateClip       float64      `yaml:"update_clip,omitempty" jsonschema:"exclusiveMinimum=0" jsonschema_description:"largest norm of a participant's update; what is longer is shortened to it"`
	Relation         string       `yaml:"relation,omitempty" jsonschema:"enum=add-remove,enum=replace-one" only:"algorithm.mode=sound" also:"judge.evaluate" jsonschema_description:"which data sets are neighbours: one example (client: one participant) more or less, or one replaced by another, which leaves their number public"`
	PublicSize       int          `yaml:"public_size,omitempty" jsonschema:"minimum=0,maximum=1000000000" only:"algorithm.mode=sound;privacy.relation=add-remove" jsonschema_description:"declared number of examples that rate and steps follow from, under add-remove; 0: not declared"`
	RecordsPerPerson int          `yaml:"records_per_person,omitempty" jsonschema:"minimum=1,maximum=1000" also:"judge.evaluate" jsonschema_description:"records that one person may have; the target then holds for a person"`
	MomentsShare     float64      `yaml:"moments_share,omitempty" jsonschema:"exclusiveMinimum=0,exclusiveMaximum=1" only:"algorithm.mode=sound;data.standardise=paid" jsonschema_description:"epsilon of the moments by themselves, as a share of the silo's whole"`
	Nodes            Nodes        `yaml:"nodes,omitempty" jsonschema_description:"which contacts enter whose example, and so what is promised to a person"`
	Silos            []SiloTarget `yaml:"silos,omitempty" jsonschema_description:"participants that have a target of their own"`
}

// Clipping says how the clip is found during training. It starts at clip (or update_clip)
// and moves by what was released, noise included.
type Clipping struct {
	Rule          string  `yaml:"rule,omitempty" jsonschema:"enum=fixed,enum=quantile,enum=online,enum=adam-wosm" jsonschema_description:"fixed, the clip stays; quantile (Andrew et al.), it follows a quantile of the norms; online (OSO-DPSGD), clip and step size follow the agreement of released gradients; adam-wosm (Mohapatra et al.), it stays, and Adam's first moment is divided by the noise; empty: fixed"`
	Quantile      float64 `yaml:"quantile,omitempty" jsonschema:"minimum=0,maximum=1" only:"privacy.clipping.rule=quantile" jsonschema_description:"share of the norms that should lie below the clip; 0: 0.5"`
	Rate          float64 `yaml:"rate,omitempty" jsonschema:"minimum=0,maximum=10" only:"privacy.clipping.rule=quantile|online" jsonschema_description:"how fast the clip's logarithm moves; 0: 0.2 for quantile, 0.0025 for online"`
	StepRate      float64 `yaml:"step_rate,omitempty" jsonschema:"minimum=0,maximum=10" only:"privacy.clipping.rule=online" jsonschema_description:"how fast the step size's logarithm moves; 0: 0.0025"`
	GradientNoise float64 `yaml:"gradient_noise,omitempty" jsonschema:"minimum=0,maximum=1000" only:"privacy.clipping.rule=quantile|online" jsonschema_description:"noise on the gradients' sum over the noise that a step is charged for, above 1: what is left pays for the second sum that the clip is learned from; 0: 1.01 for online, and for quantile what leaves the count noise of a twentieth of the batch"`
	Learn         string  `yaml:"learn,omitempty" jsonschema:"enum=both,enum=clip,enum=step,enum=nothing,enum=random" only:"privacy.clipping.rule=online" jsonschema_description:"what online moves: both, clip and step; or one of them; or nothing; random moves both by coins, to show what learning adds; empty: both"`
	Decay         float64 `yaml:"decay,omitempty" jsonschema:"minimum=-1,maximum=1" jsonschema_description:"after every step the clip is multiplied by exp(-decay): a public schedule; 0: none"`
	Lowest        float64 `yaml:"lowest,omitempty" jsonschema:"minimum=0" jsonschema_description:"public limit below which the clip never falls; 0: a millionth of where it starts"`
	Highest       float64 `yaml:"highest,omitempty" jsonschema:"minimum=0" jsonschema_description:"public limit above which the clip never rises; 0: a million times where it starts"`
}

// Sector is the part of a hollow ball around a public axis that updates are brought into
// (paper 001, chapter 5).
type Sector struct {
	Lower float64 `yaml:"lower,omitempty" jsonschema:"minimum=0,maximum=1" jsonschema_description:"smallest length of an update, as a share of update_clip; 0: any"`
	Angle float64 `yaml:"angle,omitempty" jsonschema:"minimum=0,maximum=180" jsonschema_description:"largest angle to the axis, in degrees; 0: there is no sector"`
	Axis  string  `yaml:"axis,omitempty" jsonschema:"enum=last,enum=mean" jsonschema_description:"last, the last released mean of updates; mean, the running mean of all released ones; in the first round there is none and updates are clipped to the ball; empty: last"`
}

// Nodes says which contacts of a population enter whose example (docs/pandemic.md).
type Nodes struct {
	Contacts string  `yaml:"contacts,omitempty" jsonschema:"enum=nominated,enum=home,enum=thinned,enum=pruned,enum=drawn" jsonschema_description:"nominated, every person offers itself to some of its own longest contacts: protects a person's own record; home, those who live together, and thinned, each contact by a secret draw in every step: both protect a person with all its contacts; pruned, a cap, and drawn, the authors' own draw: nothing is proved; empty: nominated"`
	Examples int     `yaml:"examples,omitempty" jsonschema:"minimum=0,maximum=1000" jsonschema_description:"S, the examples that one person is in at most, its own included; home: the largest household that contributes; drawn: neighbours of an example; thinned: not read; 0: 6 (home: 8, drawn: 20)"`
	Take     int     `yaml:"take,omitempty" jsonschema:"minimum=0,maximum=1000" only:"algorithm.mode=sound;privacy.nodes.contacts=nominated" jsonschema_description:"offers that an example takes at most; 0: 20"`
	Keep     float64 `yaml:"keep,omitempty" jsonschema:"minimum=0,maximum=1" only:"algorithm.mode=sound;privacy.nodes.contacts=thinned" jsonschema_description:"chance that a step keeps a contact; 0: 0.05"`
	Degree   int     `yaml:"degree,omitempty" jsonschema:"minimum=0,maximum=100000" only:"algorithm.mode=sound;privacy.nodes.contacts=thinned" jsonschema_description:"contacts that nobody has more of: a promise that the claim rests on, from how contacts are reported and not from looking at these; must be given"`
}

// Execution says how fast and how safe from interruption; it changes no result, but that
// another device rounds differently.
type Execution struct {
	Device            string  `yaml:"device,omitempty" jsonschema:"pattern=^(auto|cpu|cuda(:[0-9]+)?)$" jsonschema_description:"what computes networks: cpu, the processor; cuda or cuda:n, the NVIDIA GPU with that number, counted from 0 (docs/gpu.md); auto, cuda:0 if it can, otherwise the processor, and the result says which; bits differ between them; empty: cpu"`
	Workers           int     `yaml:"workers" jsonschema:"minimum=0,maximum=4096" jsonschema_description:"goroutines that train; 0: one a core"`
	Hold              string  `yaml:"hold,omitempty" jsonschema:"enum=all,enum=asked" jsonschema_description:"which clients are held in memory: all of them, or of those alone who were ever asked what they keep (data that are drawn, and tables, which then lie in a temporary file); empty: asked of more than 100,000 clients that are drawn, where the run allows it"`
	CheckpointSeconds float64 `yaml:"checkpoint_seconds" jsonschema:"minimum=0" jsonschema_description:"least time between two checkpoints"`
}
