// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package relay

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// frame is one message of a stream, never decoded.
type frame struct {
	data mem.BufferSlice
}

// rawCodec hands messages on as they are. It is called proto because that is what the bytes are for the two ends.
type rawCodec struct{}

var _ encoding.CodecV2 = rawCodec{}

// Marshal gives the frame's buffers away: grpc frees them once they are sent.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("relay cannot send a %T", v)
	}
	data := f.data
	f.data = nil
	return data, nil
}

// Unmarshal keeps the buffers beyond the call, for which it takes a reference of its own.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("relay cannot receive into a %T", v)
	}
	data.Ref()
	f.data = data
	return nil
}

// Name is the content subtype that the control plane sees.
func (rawCodec) Name() string { return "proto" }
