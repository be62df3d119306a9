// Package data holds data sets: their examples, generators, loaders and splits.
//
// A data set is a file, or a few whose names begin alike, that registers one [Kind]: its
// name, the papers' settings for runs on it, its keys and their check, its loader, and
// what a report says of it. Nothing else needs to know that it is there.
//
//   - Examples: client.go (rows, pictures, and the [Client] that holds them),
//     federation.go, shape.go, images.go.
//   - What is common to all data sets: kind.go (the registry), folder.go (what has been
//     read once), report.go (what a loader left out), split_clients.go and
//     split_examples.go (who is held out), standardise.go.
//   - Generated: synthetic.go.
//   - A client a provider or writer: hospital*.go, writers*.go.
//   - Rows of one table dealt out to clients: adult.go, compas.go, by table_clients.go.
//   - Silos: school.go, vehicle.go, gleam.go, adni.go, rotatedmnist.go, cifar.go, by
//     silos*.go.
//   - The user's own: package source, below this one.
//   - Populations with their contacts: package contacts, below this one; here is only what a
//     [Client] holds of one, [People].
//   - Formats: table.go and table_*.go (CSV), silos_mat.go (MATLAB), images_idx.go
//     (MNIST), writers_leaf*.go (LEAF's JSON).
package data
