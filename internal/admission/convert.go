// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"cmp"
	stdjson "encoding/json"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tulle-mesh/tulle/api/v1beta1"
	"github.com/tulle-mesh/tulle/api/v1beta2"
)

// versionV1alpha1 was served beside v1beta1 with the same schema.
const versionV1alpha1 = v1beta2.Group + "/v1alpha1"

// serveConversion answers conversion reviews.
func (a *admitter) serveConversion(w http.ResponseWriter, r *http.Request) {
	review := &apiextensionsv1.ConversionReview{}
	if !a.server.Read(w, r, maxConversion, review) {
		return
	}
	request := review.Request
	switch {
	case review.Kind != "ConversionReview" || review.APIVersion != apiextensionsv1.SchemeGroupVersion.String():
		a.server.BadRequest(w, r, fmt.Sprintf("this is %s %s; want apiextensions.k8s.io/v1 ConversionReview", review.APIVersion, review.Kind))
		return
	case request == nil || request.UID == "":
		a.server.BadRequest(w, r, "the review holds no request with a uid")
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	response.ConvertedObjects = make([]runtime.RawExtension, 0, len(request.Objects))
	for i := range request.Objects {
		converted, err := Convert(request.Objects[i].Raw, request.DesiredAPIVersion)
		if err != nil {
			a.Logger.ErrorContext(r.Context(), "object not converted", "to", request.DesiredAPIVersion, "error", err)
			response.ConvertedObjects = nil
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			break
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: converted})
	}
	review.Request, review.Response = nil, response
	a.server.Write(w, r, review)
}

// document is an object as the API server sends it, read as far as conversion needs.
type document struct {
	metav1.TypeMeta `json:",inline"`

	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
}

func (d *document) String() string {
	if d.Metadata.Namespace == "" {
		return d.Kind + " " + d.Metadata.Name
	}
	return d.Kind + " " + d.Metadata.Namespace + "/" + d.Metadata.Name
}

// Convert turns an object in JSON into another version of the API. Its metadata stays byte for byte; nothing of its spec and
// status is lost on the way there and back.
func Convert(raw []byte, apiVersion string) ([]byte, error) {
	var in document
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("an object cannot be read: %w", err)
	}
	if in.APIVersion == apiVersion {
		return raw, nil
	}
	var parts map[string]stdjson.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", &in, err)
	}
	converted, err := convertTyped(&in, raw, apiVersion)
	if err != nil {
		// A status is made anew; one that cannot be read must not keep the object from its users.
		delete(parts, "status")
		converted, err = convertWithout(&in, parts, apiVersion)
	}
	if err != nil {
		return nil, err
	}
	var made map[string]stdjson.RawMessage
	if err := json.Unmarshal(converted, &made); err != nil {
		return nil, fmt.Errorf("%s: reading what it became: %w", &in, err)
	}
	for _, part := range []string{"spec", "status"} {
		if _, had := parts[part]; had {
			parts[part] = made[part]
		}
	}
	parts["apiVersion"] = made["apiVersion"]
	if len(parts["spec"]) == 0 {
		parts["spec"] = made["spec"]
	}
	out, err := json.Marshal(parts)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", &in, err)
	}
	return out, nil
}

func convertWithout(in *document, parts map[string]stdjson.RawMessage, apiVersion string) ([]byte, error) {
	raw, err := json.Marshal(parts)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", in, err)
	}
	return convertTyped(in, raw, apiVersion)
}

func convertTyped(in *document, raw []byte, apiVersion string) ([]byte, error) {
	from := cmp.Or(map[string]string{versionV1alpha1: v1beta1.GroupVersion().String()}[in.APIVersion], in.APIVersion)
	var out any
	var err error
	switch old, stored := v1beta1.GroupVersion().String(), v1beta2.GroupVersion().String(); {
	case from == old && apiVersion == stored:
		out, err = forward(in.Kind, raw)
	case from == stored && apiVersion == old:
		out, err = back(in.Kind, raw)
	default:
		return nil, fmt.Errorf("%s cannot be converted from %s to %s: this control plane knows v1beta1 and v1beta2 of %s",
			in, in.APIVersion, apiVersion, v1beta2.Group)
	}
	if err != nil {
		return nil, fmt.Errorf("%s of %s cannot be converted to %s: %w; mend it in the version in which it is stored",
			in, in.APIVersion, apiVersion, err)
	}
	converted, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", in, err)
	}
	return converted, nil
}

func forward(kind string, raw []byte) (any, error) {
	switch kind {
	case kindMesh:
		return into(raw, (*v1beta1.Mesh).ToV1beta2)
	case kindVirtualNode:
		return into(raw, (*v1beta1.VirtualNode).ToV1beta2)
	case kindVirtualService:
		return into(raw, (*v1beta1.VirtualService).ToV1beta2)
	}
	return nil, fmt.Errorf("v1beta1 has no kind %q", kind)
}

func back(kind string, raw []byte) (any, error) {
	switch kind {
	case kindMesh:
		return into(raw, v1beta1.MeshFrom)
	case kindVirtualNode:
		return into(raw, v1beta1.VirtualNodeFrom)
	case kindVirtualService:
		return into(raw, v1beta1.VirtualServiceFrom)
	}
	return nil, fmt.Errorf("v1beta1 has no kind %q", kind)
}

// into reads an object and converts it.
func into[From, To any](raw []byte, convert func(*From) *To) (any, error) {
	object := new(From)
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, err
	}
	return convert(object), nil
}
