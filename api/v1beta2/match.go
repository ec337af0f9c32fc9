// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

// MatchRange is a range of integers.
type MatchRange struct {
	// Start is the first value of the range.
	Start int64 `json:"start"`
	// End is the first value past the range; above start.
	End int64 `json:"end"`
}

// ValueMatch matches a header's or metadata's value; set exactly one member.
type ValueMatch struct {
	// Exact is the whole value.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Exact *string `json:"exact,omitempty"`
	// Prefix is the beginning of the value.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Prefix *string `json:"prefix,omitempty"`
	// Range holds the value, which must be an integer.
	// +optional
	Range *MatchRange `json:"range,omitempty"`
	// Regex is an RE2 expression for the whole value.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Regex *string `json:"regex,omitempty"`
	// Suffix is the end of the value.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Suffix *string `json:"suffix,omitempty"`
}

// HTTPRouteHeader is a condition on a request header.
type HTTPRouteHeader struct {
	// Name of the header.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	Name string `json:"name"`
	// Match of the value; without it the header need only be there.
	// +optional
	Match *ValueMatch `json:"match,omitempty"`
	// Invert turns the condition round; false when absent.
	// +optional
	Invert *bool `json:"invert,omitempty"`
}

// GRPCRouteMetadata is a condition on a call's metadata.
type GRPCRouteMetadata struct {
	// Name of the metadata key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	Name string `json:"name"`
	// Match of the value; without it the key need only be there.
	// +optional
	Match *ValueMatch `json:"match,omitempty"`
	// Invert turns the condition round; false when absent.
	// +optional
	Invert *bool `json:"invert,omitempty"`
}

// HTTPPathMatch matches the whole path; set exactly one member.
type HTTPPathMatch struct {
	// Exact is the path.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Exact *string `json:"exact,omitempty"`
	// Regex is an RE2 expression for the path.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Regex *string `json:"regex,omitempty"`
}

// QueryParameterMatch matches the value of a query parameter.
type QueryParameterMatch struct {
	// Exact is the whole value.
	// +optional
	Exact *string `json:"exact,omitempty"`
}

// HTTPQueryParameter is a condition on a query parameter.
type HTTPQueryParameter struct {
	// Name of the parameter.
	Name string `json:"name"`
	// Match of the value; without it the parameter need only be there.
	// +optional
	Match *QueryParameterMatch `json:"match,omitempty"`
}

// HTTPMethod is a request method.
// +kubebuilder:validation:Enum=CONNECT;DELETE;GET;HEAD;OPTIONS;PATCH;POST;PUT;TRACE
type HTTPMethod string

// HTTPScheme is a request scheme.
// +kubebuilder:validation:Enum=http;https
type HTTPScheme string

// The schemes that a route can match.
const (
	HTTPSchemeHTTP  HTTPScheme = "http"
	HTTPSchemeHTTPS HTTPScheme = "https"
)
