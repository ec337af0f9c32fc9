// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

// ServiceDiscovery says how callers find a node's workloads; a union of which exactly one member is set.
type ServiceDiscovery struct {
	DNS         *DNSServiceDiscovery         `json:"dns,omitempty"`
	AWSCloudMap *AWSCloudMapServiceDiscovery `json:"awsCloudMap,omitempty"`
}

// DNSServiceDiscovery finds workloads by a host name.
type DNSServiceDiscovery struct {
	Hostname string `json:"hostname"`
	// ResponseType is how an answer is read; empty is LOADBALANCER.
	ResponseType DNSResponseType `json:"responseType,omitempty"`
	IPPreference IPPreference    `json:"ipPreference,omitempty"`
}

// DNSResponseType is how a DNS answer is read.
type DNSResponseType string

// The response types of the App Mesh API: the answer stands for one load balancer, or each address in it is an endpoint.
const (
	DNSLoadBalancer DNSResponseType = "LOADBALANCER"
	DNSEndpoints    DNSResponseType = "ENDPOINTS"
)

// AWSCloudMapServiceDiscovery finds workloads by the name and attributes that they would have in AWS Cloud Map. Tulle serves them from the node's pods.
type AWSCloudMapServiceDiscovery struct {
	NamespaceName string `json:"namespaceName"`
	ServiceName   string `json:"serviceName"`
	// Attributes must all be present on an instance for it to be an endpoint.
	Attributes   []CloudMapAttribute `json:"attributes,omitempty"`
	IPPreference IPPreference        `json:"ipPreference,omitempty"`
}

// CloudMapAttribute is a key and a value that an instance carries.
type CloudMapAttribute struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}
