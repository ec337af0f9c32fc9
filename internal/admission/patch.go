// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tulle-mesh/tulle/internal/admission/review"
)

// difference is the JSON patch that turns the fields of before, which raw holds, into those of after. It touches no other
// field, so that what admission does not know survives, and its steps have one order.
func difference(raw []byte, before, after *subject) ([]review.Operation, error) {
	var out []review.Operation
	set := func(field string, was, is any, gone bool) {
		switch {
		case apiequality.Semantic.DeepEqual(was, is):
		case gone:
			out = append(out, review.Operation{Op: "remove", Path: "/spec/" + field})
		default:
			// "add" replaces what is there already.
			out = append(out, review.Operation{Op: "add", Path: "/spec/" + field, Value: is})
		}
	}
	if after.awsName != nil {
		set("awsName", *before.awsName, *after.awsName, *after.awsName == nil)
	}
	if after.gatewayRef != nil {
		set("virtualGatewayRef", *before.gatewayRef, *after.gatewayRef, *after.gatewayRef == nil)
	}
	if after.meshRef != nil {
		set("meshRef", *before.meshRef, *after.meshRef, *after.meshRef == nil)
	}
	if len(out) == 0 {
		return nil, nil
	}
	var top struct {
		Spec stdjson.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(raw, &top); err != nil {
		return nil, fmt.Errorf("reading the object's spec: %w", err)
	}
	if len(top.Spec) == 0 || bytes.Equal(top.Spec, []byte("null")) {
		out = append([]review.Operation{{Op: "add", Path: "/spec", Value: struct{}{}}}, out...)
	}
	return out, nil
}
