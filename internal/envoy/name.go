// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"strconv"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// The names of listeners. Dashboards and scripts of App Mesh users hold them.
const (
	inboundListener  = "lds_ingress_0.0.0.0_15000"
	outboundListener = "lds_egress_0.0.0.0_15001"
)

// EndpointsName is the name of the load assignment of one listener of a node, which is also the name of the node's cluster at most callers:
// "cds_egress_<mesh>_<node>_<protocol>_<port>".
func EndpointsName(k mesh.EndpointSetKey) string {
	return "cds_egress_" + k.Mesh + "_" + k.Node + "_" + string(k.Protocol) + "_" + portText(k.Port)
}

// egressName is the name of a caller's cluster. service is set where the backend has a client policy of its own.
func egressName(k mesh.EndpointSetKey, service string) string {
	if service == "" {
		return EndpointsName(k)
	}
	return EndpointsName(k) + "_" + service
}

// ingressName is the name of the cluster that holds the proxy's own workload.
func ingressName(meshName, node string, m mesh.PortMapping) string {
	return "cds_ingress_" + meshName + "_" + node + "_" + string(m.Protocol) + "_" + portText(m.Port)
}

// awsName is the name of the cluster that takes connections to AWS's own services.
func awsName(meshName string) string { return "cds_egress_" + meshName + "_amazonaws" }

// passName is the name of the cluster that takes what the mesh does not model, under ALLOW_ALL.
func passName(meshName string) string { return "cds_egress_" + meshName + "_mesh-allow-all" }

// egressRoutesName and ingressRoutesName are the names of route configurations; all HTTP protocols share the token "http".
func egressRoutesName(port int32) string { return "rds_egress_http_" + portText(port) }

func ingressRoutesName(port int32) string { return "rds_ingress_http_" + portText(port) }

func portText(port int32) string { return strconv.Itoa(int(port)) }

// The names of filter chains. They tell which chain a connection is on, so a chain keeps its name for as long as it means the same.
const (
	awsChain    = "amazonaws"
	passChain   = "mesh-allow-all"
	closedChain = "closed"
)

// httpChain is the name of the one chain of all HTTP services on a port.
func httpChain(port int32) string { return "http_" + portText(port) }

// tcpChain is the name of the chain of a TCP service on a port.
func tcpChain(service string, port int32) string { return "tcp_" + service + "_" + portText(port) }

// ingressChain is the name of the chain of one of the proxy's own listeners.
func ingressChain(m mesh.PortMapping) string { return string(m.Protocol) + "_" + portText(m.Port) }
