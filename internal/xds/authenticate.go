// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// authenticate asks who the client is and whether it may be the node. Without an authenticator it may be anyone.
func (st *stream) authenticate(ctx context.Context, nodeID string) (string, error) {
	if st.srv.auth == nil {
		return "", nil
	}
	st.mu.Lock()
	st.proxy.NodeID = nodeID // as it says itself, for the log
	st.mu.Unlock()
	identity, err := st.srv.auth.Authenticate(ctx, nodeID, func(err error) { st.end(denied(refusal(ctx, err))) })
	if err != nil {
		return "", denied(refusal(ctx, err))
	}
	return identity, nil
}

// denied makes a refusal the client's fault where it is.
func denied(err error) error {
	s := status.Convert(err)
	switch s.Code() {
	case codes.Unauthenticated:
		return &fault{status: s, reason: CutStranger}
	case codes.PermissionDenied:
		return &fault{status: s, reason: CutImpostor}
	default:
		return err
	}
}

// otherNode refuses a client that says it is another node than at first.
func (s *Server) otherNode(first, then string) error {
	const format = "the node id changed from %q to %q within one stream"
	if s.auth == nil {
		return garbage(format, clip(first), clip(then))
	}
	return denied(status.Errorf(codes.PermissionDenied, format, clip(first), clip(then)))
}
