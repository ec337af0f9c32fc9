// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"fmt"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

func (b *builder) virtualServiceName(field string, ref *v1beta2.VirtualServiceReference, arn *string) (string, bool) {
	var target *ID
	if ref != nil {
		target = &ID{Kind: kindVirtualService, Namespace: nameOr(ref.Namespace, b.in.id.Namespace), Name: ref.Name}
	}
	return b.resolve(field, mesh.KindVirtualService, target, arn)
}

func (b *builder) virtualNodeName(field string, ref *v1beta2.VirtualNodeReference, arn *string) (string, bool) {
	var target *ID
	if ref != nil {
		target = &ID{Kind: kindVirtualNode, Namespace: nameOr(ref.Namespace, b.in.id.Namespace), Name: ref.Name}
	}
	return b.resolve(field, mesh.KindVirtualNode, target, arn)
}

func (b *builder) virtualRouterName(field string, ref *v1beta2.VirtualRouterReference, arn *string) (string, bool) {
	var target *ID
	if ref != nil {
		target = &ID{Kind: kindVirtualRouter, Namespace: nameOr(ref.Namespace, b.in.id.Namespace), Name: ref.Name}
	}
	return b.resolve(field, mesh.KindVirtualRouter, target, arn)
}

// prefix is what the names of the reference and ARN fields of a kind begin with.
func prefix(kind mesh.Kind) string {
	switch kind {
	case mesh.KindVirtualNode:
		return "virtualNode"
	case mesh.KindVirtualRouter:
		return "virtualRouter"
	default:
		return "virtualService"
	}
}

// resolve finds the App Mesh name of what a reference or an ARN means; the ARN wins. It says false, and why, for
// something that does not exist in the object's mesh.
func (b *builder) resolve(field string, kind mesh.Kind, ref *ID, arn *string) (string, bool) {
	field += "." + prefix(kind)
	switch {
	case arn != nil:
		if ref != nil {
			b.add(problem{
				severity: mesh.SeverityWarning,
				reason:   mesh.ReasonIgnored,
				field:    field + "Ref",
				value:    ref.Name,
				message:  "a reference and an ARN are given for the same thing; the ARN holds",
				mend:     "remove one of the two",
			})
		}
		return b.resolveARN(field+"ARN", kind, *arn)
	case ref != nil:
		return b.resolveRef(field+"Ref.name", *ref)
	}
	b.add(problem{
		reason:  mesh.ReasonInvalid,
		field:   field + "Ref",
		message: fmt.Sprintf("neither a reference nor an ARN says which %s is meant", kind),
		mend:    fmt.Sprintf("set %sRef.name", prefix(kind)),
	})
	return "", false
}

func (b *builder) resolveRef(field string, ref ID) (string, bool) {
	target := identityOf(b.reader, ref)
	switch {
	case target == nil:
		b.add(problem{
			reason:  mesh.ReasonRefNotFound,
			field:   field,
			value:   ref.Name,
			message: fmt.Sprintf("there is no %s %q in namespace %q, to which this reference points", ref.Kind, ref.Name, ref.Namespace),
			mend:    fmt.Sprintf("create the %s, or correct the reference's name or namespace", ref.Kind),
		})
	case target.mesh == "":
		b.add(problem{
			reason:  mesh.ReasonRefNotFound,
			field:   field,
			value:   ref.Name,
			message: fmt.Sprintf("the %s %s/%s, to which this reference points, belongs to no mesh", ref.Kind, ref.Namespace, ref.Name),
			mend:    "mend the " + ref.Kind,
		})
	case target.mesh != b.self.mesh:
		b.add(problem{
			reason: mesh.ReasonRefNotFound,
			field:  field,
			value:  ref.Name,
			message: fmt.Sprintf("the %s %s/%s, to which this reference points, belongs to mesh %q and this object to mesh %q",
				ref.Kind, ref.Namespace, ref.Name, target.mesh, b.self.mesh),
			mend: "refer to an object of the same mesh",
		})
	case holder(b.reader, target.key) != ref:
		b.add(problem{
			reason: mesh.ReasonRefNotFound,
			field:  field,
			value:  ref.Name,
			message: fmt.Sprintf("the %s %s/%s, to which this reference points, is not in force: its name %q belongs to another object",
				ref.Kind, ref.Namespace, ref.Name, target.key.Name),
			mend: "choose another awsName for one of the two",
		})
	default:
		return target.key.Name, true
	}
	return "", false
}

func (b *builder) resolveARN(field string, kind mesh.Kind, text string) (string, bool) {
	arn, err := mesh.ParseARN(text)
	if err != nil || arn.Key.Kind != kind {
		b.add(problem{
			reason:  mesh.ReasonInvalid,
			field:   field,
			value:   text,
			message: fmt.Sprintf("%q is not the ARN of a %s", text, kind),
			mend:    fmt.Sprintf("write arn:aws:appmesh:REGION:ACCOUNT:mesh/%s/%s/NAME", b.self.mesh, prefix(kind)),
		})
		return "", false
	}
	if arn.Key.Mesh != b.self.mesh {
		b.add(problem{
			reason:  mesh.ReasonRefNotFound,
			field:   field,
			value:   text,
			message: fmt.Sprintf("the ARN names a %s of mesh %q, and this object belongs to mesh %q", kind, arn.Key.Mesh, b.self.mesh),
			mend:    "name something of the same mesh",
		})
		return "", false
	}
	return b.named(field, arn.Key)
}

// named resolves an App Mesh name.
func (b *builder) named(field string, key mesh.Key) (string, bool) {
	if holder(b.reader, key) != (ID{}) {
		return key.Name, true
	}
	b.add(problem{
		reason:  mesh.ReasonRefNotFound,
		field:   field,
		value:   key.Name,
		message: fmt.Sprintf("there is no %s with the App Mesh name %q in mesh %q", key.Kind, key.Name, key.Mesh),
		mend:    fmt.Sprintf("create the %s, or name one that exists", key.Kind),
	})
	return "", false
}
