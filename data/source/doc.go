// Package source reads the user's own data where they lie: tables, pictures and texts, a
// client a part of them.
//
// It registers the kinds of data `table`, `pictures` and `text`, and brings what reading files
// needs that package data must not: decoders and large libraries. Readers find all that is
// wrong at once, with its place, and then return nothing.
//
//   - Tables: table.go (the kind), reading.go (what is wanted of a table), layout.go (its
//     columns in a file), gather.go (rows by client), files.go; csv*.go, parquet*.go,
//     sql*.go and driver.go (formats); utf8.go (what is no text); raw*.go (cells as they are,
//     for a first look).
//   - Pictures: pictures.go (the kind, and one client for a federation), pictures_find.go
//     (whose files they are), pictures_read.go (many at once), pictures_decode.go (PNG and
//     JPEG), pictures_arrays.go (idx and npz), pictures_npy.go (NumPy's format),
//     pictures_scale.go (the public size).
//   - Texts: text.go (the kind, whose files they are, and rows of words).
package source
