// Package kernels has the CUDA kernels: their source, and what nvcc made of it.
package kernels

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"strings"
	"sync"
)

//go:embed kernels.cu common.cuh conv.cuh direct.cuh thin.cuh pooling.cuh pooled.cuh taps.cuh merged.cuh dense.cuh few.cuh other.cuh resident.cuh halves.cuh tokens.cuh words.cuh norm.cuh attention.cuh whole.cuh tensor.cu tensor.cuh tensor_conv.cuh tensor_taps.cuh ends.cuh products.cuh groups.cu two_parts.cuh groups.cuh group_products.cuh group_norms.cuh text_parts.cuh text_products.cuh text_chain.cuh text_attention.cuh text_sums.cuh text_words.cuh
var sources embed.FS

// Compressed, PTX is a fifth as long.
var (
	//go:embed kernels.ptx.gz
	compressed []byte
	//go:embed tensor.ptx.gz
	compressedTensor []byte
	//go:embed groups.ptx.gz
	compressedGroups []byte
)

// PTX is what nvcc made of kernels.cu, for any device from compute capability 7.5 on, TensorPTX
// what it made of tensor.cu, for those from 8.0 on, and GroupsPTX of groups.cu, for 9.0 alone;
// the first line of each names the source (scripts/cuda-kernels).
var (
	PTX       = sync.OnceValue(func() string { return unpacked(compressed) })
	TensorPTX = sync.OnceValue(func() string { return unpacked(compressedTensor) })
	GroupsPTX = sync.OnceValue(func() string { return unpacked(compressedGroups) })
)

func unpacked(compressed []byte) string {
	var text strings.Builder
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err == nil {
		_, err = io.Copy(&text, r)
	}
	if err != nil {
		panic("kernels: " + err.Error()) // it is embedded
	}
	return text.String()
}

// Modules are all three, in the order in which devices need more.
func Modules() []string { return []string{PTX(), TensorPTX(), GroupsPTX()} }

// Names are the files of the source, in the order in which they are hashed.
var Names = []string{"kernels.cu", "common.cuh", "conv.cuh", "direct.cuh", "thin.cuh", "pooling.cuh", "pooled.cuh", "taps.cuh", "merged.cuh", "dense.cuh", "few.cuh", "other.cuh", "resident.cuh", "halves.cuh", "tokens.cuh", "words.cuh", "norm.cuh", "attention.cuh", "whole.cuh", "tensor.cu", "tensor.cuh", "tensor_conv.cuh", "tensor_taps.cuh", "ends.cuh", "products.cuh", "groups.cu", "two_parts.cuh", "groups.cuh", "group_products.cuh", "group_norms.cuh", "text_parts.cuh", "text_products.cuh", "text_chain.cuh", "text_attention.cuh", "text_sums.cuh", "text_words.cuh"}

// Hash is the SHA-256 of the source, in hex: what names results that were computed with it.
func Hash() string {
	h := sha256.New()
	for _, name := range Names {
		text, err := sources.ReadFile(name)
		if err != nil {
			panic("kernels: " + err.Error()) // they are embedded
		}
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Source is the hash of the source that PTX was made from, as its first line has it.
func Source(ptx string) string {
	line, _, _ := strings.Cut(ptx, "\n")
	return strings.TrimPrefix(line, "// source sha256 ")
}
