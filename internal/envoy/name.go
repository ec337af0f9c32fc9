// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"fmt"
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
	return fmt.Sprintf("cds_egress_%s_%s_%s_%d", k.Mesh, k.Node, k.Protocol, k.Port)
}

// egressCluster is the name of a caller's cluster. service is set where the backend has a client policy of its own.
func egressCluster(k mesh.EndpointSetKey, service string) string {
	if service == "" {
		return EndpointsName(k)
	}
	return EndpointsName(k) + "_" + service
}

// ingressCluster is the name of the cluster that holds the proxy's own workload.
func ingressCluster(meshName, node string, m mesh.PortMapping) string {
	return fmt.Sprintf("cds_ingress_%s_%s_%s_%d", meshName, node, m.Protocol, m.Port)
}

// awsCluster is the name of the cluster that takes connections to AWS's own services.
func awsCluster(meshName string) string { return "cds_egress_" + meshName + "_amazonaws" }

// passCluster is the name of the cluster that takes what the mesh does not model, under ALLOW_ALL.
func passCluster(meshName string) string { return "cds_egress_" + meshName + "_mesh-allow-all" }

// egressRoutes and ingressRoutes are the names of route configurations; all HTTP protocols share the token "http".
func egressRoutes(port int32) string { return "rds_egress_http_" + portText(port) }

func ingressRoutes(port int32) string { return "rds_ingress_http_" + portText(port) }

func portText(port int32) string { return strconv.Itoa(int(port)) }
