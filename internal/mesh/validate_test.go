// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// faultsOf parses a spec of kind and returns the fields at fault; warnings are marked.
func faultsOf(t *testing.T, kind mesh.Kind, spec string) []string {
	t.Helper()
	o, err := request{Kind: kind, Spec: []byte(spec)}.object()
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, f := range mesh.Validate(o) {
		if f.Message == "" || f.Mend == "" {
			t.Errorf("finding without message or mend: %+v", f)
		}
		if f.Severity == mesh.SeverityWarning {
			f.Field += " (warning)"
		}
		fields = append(fields, f.Field)
	}
	return fields
}

func TestValidateFindsTheFieldsAtFault(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 256)
	listener := func(text string) string {
		return `{"serviceDiscovery":{"dns":{"hostname":"h"}},"listeners":[` + text + `]}`
	}
	http := func(match, rest string) string {
		return `{"httpRoute":{"match":` + match + `,"action":{"weightedTargets":[{"virtualNode":"a","weight":1}]}` + rest + `}}`
	}
	gateway := func(match, rest string) string {
		return `{"httpRoute":{"match":` + match + `,"action":{"target":{"virtualService":{"virtualServiceName":"s"}}` + rest + `}}}`
	}
	const l, r, g = "spec.listeners[0]", "spec.httpRoute.match", "spec.httpRoute"
	for name, c := range map[string]struct {
		kind mesh.Kind
		spec string
		want []string
	}{
		"an empty mesh is sound":                     {mesh.KindMesh, `{}`, nil},
		"an egress filter needs a type":              {mesh.KindMesh, `{"egressFilter":{"type":""}}`, []string{"spec.egressFilter.type"}},
		"an unknown egress filter":                   {mesh.KindMesh, `{"egressFilter":{"type":"ALLOW"}}`, []string{"spec.egressFilter.type"}},
		"an unknown IP preference":                   {mesh.KindMesh, `{"serviceDiscovery":{"ipPreference":"IPv5_ONLY"}}`, []string{"spec.serviceDiscovery.ipPreference"}},
		"a service without a provider is sound":      {mesh.KindVirtualService, `{}`, nil},
		"an empty provider":                          {mesh.KindVirtualService, `{"provider":{}}`, []string{"spec.provider"}},
		"two providers":                              {mesh.KindVirtualService, `{"provider":{"virtualNode":{"virtualNodeName":"a"},"virtualRouter":{"virtualRouterName":"b"}}}`, []string{"spec.provider"}},
		"an ARN in place of a name":                  {mesh.KindVirtualService, `{"provider":{"virtualNode":{"virtualNodeName":"arn:aws:appmesh:r:a:mesh/m/virtualNode/n"}}}`, []string{"spec.provider.virtualNode.virtualNodeName"}},
		"a reference that is too long":               {mesh.KindVirtualService, `{"provider":{"virtualRouter":{"virtualRouterName":"` + long + `"}}}`, []string{"spec.provider.virtualRouter.virtualRouterName"}},
		"a router's ports are 1 to 65535 and unique": {mesh.KindVirtualRouter, `{"listeners":[{"portMapping":{"port":0,"protocol":"http"}},{"portMapping":{"port":80,"protocol":"http"}},{"portMapping":{"port":80,"protocol":"udp"}}]}`, []string{l + ".portMapping.port", "spec.listeners[2].portMapping.port", "spec.listeners[2].portMapping.protocol"}},

		"an empty node is sound":                  {mesh.KindVirtualNode, `{}`, nil},
		"a listener needs discovery":              {mesh.KindVirtualNode, `{"listeners":[{"portMapping":{"port":80,"protocol":"http"}}]}`, []string{"spec.serviceDiscovery"}},
		"discovery without a listener":            {mesh.KindVirtualNode, `{"serviceDiscovery":{"dns":{"hostname":"h"}}}`, []string{"spec.serviceDiscovery (warning)"}},
		"an empty discovery":                      {mesh.KindVirtualNode, strings.Replace(listener(`{"portMapping":{"port":80,"protocol":"http"}}`), `"dns":{"hostname":"h"}`, "", 1), []string{"spec.serviceDiscovery"}},
		"DNS needs a host name":                   {mesh.KindVirtualNode, strings.Replace(listener(`{"portMapping":{"port":80,"protocol":"http"}}`), `"h"`, `"","responseType":"ROUND","ipPreference":"x"`, 1), []string{"spec.serviceDiscovery.dns.hostname", "spec.serviceDiscovery.dns.ipPreference", "spec.serviceDiscovery.dns.responseType"}},
		"limits of awsCloudMap":                   {mesh.KindVirtualNode, strings.Replace(listener(`{"portMapping":{"port":80,"protocol":"http"}}`), `"dns":{"hostname":"h"}`, `"awsCloudMap":{"namespaceName":"","serviceName":"s","attributes":[{"key":"a b","value":" v"},{"key":"k","value":"in ner"},{"key":"","value":"ä"}]}`, 1), []string{"spec.serviceDiscovery.awsCloudMap.attributes[0].key", "spec.serviceDiscovery.awsCloudMap.attributes[0].value", "spec.serviceDiscovery.awsCloudMap.attributes[2].key", "spec.serviceDiscovery.awsCloudMap.attributes[2].value", "spec.serviceDiscovery.awsCloudMap.namespaceName"}},
		"limits of a health check":                {mesh.KindVirtualNode, listener(`{"portMapping":{"port":80,"protocol":"http"},"healthCheck":{"healthyThreshold":1,"unhealthyThreshold":11,"intervalMillis":4999,"timeoutMillis":60001,"protocol":"udp","port":81}}`), []string{l + ".healthCheck.healthyThreshold", l + ".healthCheck.intervalMillis", l + ".healthCheck.port", l + ".healthCheck.protocol", l + ".healthCheck.timeoutMillis", l + ".healthCheck.unhealthyThreshold"}},
		"a gRPC check needs http2 or grpc":        {mesh.KindVirtualNode, listener(`{"portMapping":{"port":80,"protocol":"http"},"healthCheck":{"healthyThreshold":2,"unhealthyThreshold":2,"intervalMillis":5000,"timeoutMillis":2000,"protocol":"grpc"}}`), []string{l + ".healthCheck.protocol"}},
		"a path means nothing for a check by tcp": {mesh.KindVirtualNode, listener(`{"portMapping":{"port":80,"protocol":"tcp"},"healthCheck":{"healthyThreshold":2,"unhealthyThreshold":2,"intervalMillis":5000,"timeoutMillis":2000,"protocol":"tcp","path":"/","port":80}}`), []string{l + ".healthCheck.path (warning)"}},
		"a timeout is that of the protocol":       {mesh.KindVirtualNode, listener(`{"portMapping":{"port":80,"protocol":"http"},"timeout":{"grpc":{"perRequest":{"value":-1,"unit":"m"}}}}`), []string{l + ".timeout.grpc", l + ".timeout.grpc.perRequest.unit", l + ".timeout.grpc.perRequest.value"}},
		"two timeouts":                            {mesh.KindVirtualNode, listener(`{"portMapping":{"port":80,"protocol":"tcp"},"timeout":{"tcp":{"idle":{"value":1,"unit":""}},"http":{}}}`), []string{l + ".timeout", l + ".timeout.http", l + ".timeout.tcp.idle.unit"}},
		"a pool is that of the protocol":          {mesh.KindVirtualNode, listener(`{"portMapping":{"port":80,"protocol":"http"},"connectionPool":{"tcp":{"maxConnections":0}}}`), []string{l + ".connectionPool.tcp", l + ".connectionPool.tcp.maxConnections"}},
		"limits of pools":                         {mesh.KindVirtualNode, listener(`{"portMapping":{"port":80,"protocol":"http"},"connectionPool":{"http":{"maxConnections":0,"maxPendingRequests":0},"http2":{"maxRequests":0},"grpc":{"maxRequests":0}}}`), []string{l + ".connectionPool", l + ".connectionPool.grpc", l + ".connectionPool.grpc.maxRequests", l + ".connectionPool.http.maxConnections", l + ".connectionPool.http.maxPendingRequests", l + ".connectionPool.http2", l + ".connectionPool.http2.maxRequests"}},
		"limits of outlier detection":             {mesh.KindVirtualNode, listener(`{"portMapping":{"port":80,"protocol":"http"},"outlierDetection":{"maxServerErrors":0,"maxEjectionPercent":101}}`), []string{l + ".outlierDetection.baseEjectionDuration", l + ".outlierDetection.interval", l + ".outlierDetection.maxEjectionPercent", l + ".outlierDetection.maxServerErrors"}},
		"a listener's TLS":                        {mesh.KindVirtualNode, listener(`{"portMapping":{"port":80,"protocol":"http"},"tls":{"mode":"","certificate":{},"validation":{"trust":{"acm":{"certificateAuthorityArns":[]}}}}}`), []string{l + ".tls.certificate", l + ".tls.mode", l + ".tls.validation.trust", l + ".tls.validation.trust.acm", l + ".tls.validation.trust.acm.certificateAuthorityArns"}},
		"limits of certificates":                  {mesh.KindVirtualNode, listener(`{"portMapping":{"port":80,"protocol":"http"},"tls":{"mode":"STRICT","certificate":{"file":{"certificateChain":"","privateKey":"` + long + `"}},"validation":{"trust":{"file":{"certificateChain":"c"}},"subjectAlternativeNames":{"match":{"exact":["", "ok"]}}}}}`), []string{l + ".tls.certificate.file.certificateChain", l + ".tls.certificate.file.privateKey", l + ".tls.validation.subjectAlternativeNames.match.exact[0]"}},
		"a client's policy":                       {mesh.KindVirtualNode, `{"backendDefaults":{"clientPolicy":{"tls":{"ports":[0],"certificate":{"acm":{"certificateArn":"a"}},"validation":{"trust":{"acm":{"certificateAuthorityArns":["a","b","c","d"]}}}}}}}`, []string{"spec.backendDefaults.clientPolicy.tls.certificate", "spec.backendDefaults.clientPolicy.tls.certificate.acm", "spec.backendDefaults.clientPolicy.tls.ports[0]", "spec.backendDefaults.clientPolicy.tls.validation.trust.acm.certificateAuthorityArns"}},
		"an empty secret":                         {mesh.KindVirtualNode, `{"backends":[{"virtualService":{"virtualServiceName":"s","clientPolicy":{"tls":{"validation":{"trust":{"sds":{"secretName":""}}}}}}}]}`, []string{"spec.backends[0].virtualService.clientPolicy.tls.validation.trust.sds.secretName"}},
		"a backend of no kind, and one twice":     {mesh.KindVirtualNode, `{"backends":[{},{"virtualService":{"virtualServiceName":"s"}},{"virtualService":{"virtualServiceName":"s"}}]}`, []string{"spec.backends[0]", "spec.backends[2].virtualService.virtualServiceName (warning)"}},
		"an access log without a file":            {mesh.KindVirtualNode, `{"logging":{"accessLog":{}}}`, []string{"spec.logging.accessLog"}},
		"an access log of two formats":            {mesh.KindVirtualNode, `{"logging":{"accessLog":{"file":{"path":"","format":{"text":"` + strings.Repeat("y", 1001) + `","json":[{"key":"","value":"v"}]}}}}}`, []string{"spec.logging.accessLog.file.format", "spec.logging.accessLog.file.format.json[0].key", "spec.logging.accessLog.file.format.text", "spec.logging.accessLog.file.path"}},

		"a route of no kind":                      {mesh.KindRoute, `{}`, []string{"spec"}},
		"a route of two kinds":                    {mesh.KindRoute, `{"tcpRoute":{"action":{"weightedTargets":[{"virtualNode":"a","weight":1}]}},"grpcRoute":{"match":{},"action":{"weightedTargets":[{"virtualNode":"a","weight":1}]}}}`, []string{"spec"}},
		"a priority beyond 1000":                  {mesh.KindRoute, strings.Replace(http(`{"prefix":"/"}`, ""), "{", `{"priority":1001,`, 1), []string{"spec.priority"}},
		"neither prefix nor path":                 {mesh.KindRoute, http(`{}`, ""), []string{r}},
		"prefix and path":                         {mesh.KindRoute, http(`{"prefix":"/","path":{"exact":"/"}}`, ""), []string{r}},
		"a prefix begins with a slash":            {mesh.KindRoute, http(`{"prefix":"x"}`, ""), []string{r + ".prefix"}},
		"a path is exact or a regular expression": {mesh.KindRoute, http(`{"path":{}}`, ""), []string{r + ".path"}},
		"an exact path begins with a slash":       {mesh.KindRoute, http(`{"path":{"exact":"x"}}`, ""), []string{r + ".path.exact"}},
		"a broken regular expression":             {mesh.KindRoute, http(`{"path":{"regex":"("}}`, ""), []string{r + ".path.regex"}},
		"an unknown method, scheme and port":      {mesh.KindRoute, http(`{"prefix":"/","method":"get","scheme":"ftp","port":0}`, ""), []string{r + ".method", r + ".port", r + ".scheme"}},
		"headers":                                 {mesh.KindRoute, http(`{"prefix":"/","headers":[{"name":""},{"name":"`+long+`"},{"name":"a","match":{}},{"name":"a","match":{"exact":"x","prefix":"y"}},{"name":"a","match":{"range":{"start":2,"end":1}}},{"name":"a","match":{"suffix":""}}]}`, ""), []string{r + ".headers[0].name", r + ".headers[1].name", r + ".headers[2].match", r + ".headers[3].match", r + ".headers[4].match.range", r + ".headers[5].match.suffix"}},
		"more than 10 headers":                    {mesh.KindRoute, http(`{"prefix":"/","headers":[`+strings.Repeat(`{"name":"a"},`, 10)+`{"name":"a"}]}`, ""), []string{r + ".headers"}},
		"query parameters":                        {mesh.KindRoute, http(`{"prefix":"/","queryParameters":[{"name":""},{"name":"q","match":{}}]}`, ""), []string{r + ".queryParameters[0].name", r + ".queryParameters[1].match.exact"}},
		"no target":                               {mesh.KindRoute, `{"tcpRoute":{"action":{"weightedTargets":[]}}}`, []string{"spec.tcpRoute.action.weightedTargets"}},
		"targets beyond the limits":               {mesh.KindRoute, `{"tcpRoute":{"match":{"port":0},"timeout":{"idle":{"value":1,"unit":"h"}},"action":{"weightedTargets":[{"virtualNode":"","weight":1},{"virtualNode":"a","weight":101},{"virtualNode":"b","weight":0,"port":70000}]}}}`, []string{"spec.tcpRoute.action.weightedTargets", "spec.tcpRoute.action.weightedTargets[0].virtualNode", "spec.tcpRoute.action.weightedTargets[1].weight", "spec.tcpRoute.action.weightedTargets[2].port", "spec.tcpRoute.match.port", "spec.tcpRoute.timeout.idle.unit"}},
		"a retry policy without events":           {mesh.KindRoute, http(`{"prefix":"/"}`, `,"retryPolicy":{"maxRetries":-1}`), []string{g + ".retryPolicy", g + ".retryPolicy.maxRetries", g + ".retryPolicy.perRetryTimeout"}},
		"unknown events":                          {mesh.KindRoute, http(`{"prefix":"/"}`, `,"retryPolicy":{"maxRetries":1,"perRetryTimeout":{"value":1,"unit":"s"},"httpRetryEvents":["5xx"],"tcpRetryEvents":["reset","connection-error"],"grpcRetryEvents":["internal"]}`), []string{g + ".retryPolicy.grpcRetryEvents", g + ".retryPolicy.httpRetryEvents[0]", g + ".retryPolicy.tcpRetryEvents", g + ".retryPolicy.tcpRetryEvents[0]"}},
		"gRPC's method needs a service":           {mesh.KindRoute, `{"grpcRoute":{"match":{"methodName":"` + long + `","metadata":[{"name":"a b"}]},"action":{"weightedTargets":[{"virtualNode":"a","weight":1}]},"retryPolicy":{"maxRetries":0,"perRetryTimeout":{"value":0,"unit":"ms"},"grpcRetryEvents":["internal","lost"]}}}`, []string{"spec.grpcRoute.match.metadata[0].name", "spec.grpcRoute.match.methodName", "spec.grpcRoute.match.serviceName", "spec.grpcRoute.retryPolicy.grpcRetryEvents[1]"}},
		"a route with all that the API knows":     {mesh.KindRoute, http(`{"prefix":"/","method":"GET","scheme":"https","port":80,"queryParameters":[{"name":"q"}],"headers":[{"name":":authority","invert":true,"match":{"regex":"a.*"}}]}`, `,"timeout":{"idle":{"value":0,"unit":"s"}},"retryPolicy":{"maxRetries":0,"perRetryTimeout":{"value":1,"unit":"ms"},"httpRetryEvents":["server-error"]}`), nil},

		"a gateway needs a listener":                {mesh.KindVirtualGateway, `{"listeners":[]}`, []string{"spec.listeners"}},
		"a gateway has no tcp":                      {mesh.KindVirtualGateway, `{"listeners":[{"portMapping":{"port":80,"protocol":"tcp"},"connectionPool":{"tcp":{"maxConnections":1}}}]}`, []string{l + ".connectionPool", l + ".connectionPool.tcp", l + ".portMapping.protocol"}},
		"a gateway route matches something":         {mesh.KindGatewayRoute, gateway(`{}`, ""), []string{r}},
		"a gateway route by host alone":             {mesh.KindGatewayRoute, gateway(`{"hostname":{"suffix":"example.com"}}`, ""), nil},
		"a host is exact or a suffix":               {mesh.KindGatewayRoute, gateway(`{"hostname":{"exact":"a","suffix":"b"}}`, ""), []string{r + ".hostname"}},
		"a reserved prefix":                         {mesh.KindGatewayRoute, gateway(`{"prefix":"/aws-appmesh-x"}`, ""), []string{r + ".prefix"}},
		"prefix and path of a gateway route":        {mesh.KindGatewayRoute, gateway(`{"prefix":"/","path":{"regex":"["}}`, ""), []string{r, r + ".path.regex"}},
		"a rewrite of prefix and path":              {mesh.KindGatewayRoute, gateway(`{"prefix":"/a/"}`, `,"rewrite":{"prefix":{"value":"/b"},"path":{}}`), []string{g + ".action.rewrite", g + ".action.rewrite.path", g + ".action.rewrite.path.exact", g + ".action.rewrite.prefix.value"}},
		"a rewrite of a prefix that is not matched": {mesh.KindGatewayRoute, gateway(`{"path":{"exact":"/a"}}`, `,"rewrite":{"prefix":{"defaultPrefix":"OFF","value":"/b/"},"hostname":{"defaultTargetHostname":"x"}}`), []string{g + ".action.rewrite.hostname.defaultTargetHostname", g + ".action.rewrite.prefix", g + ".action.rewrite.prefix", g + ".action.rewrite.prefix.defaultPrefix"}},
		"a gRPC gateway route matches something":    {mesh.KindGatewayRoute, `{"grpcRoute":{"match":{},"action":{"target":{"virtualService":{"virtualServiceName":""},"port":0}}}}`, []string{"spec.grpcRoute.action.target.port", "spec.grpcRoute.action.target.virtualService.virtualServiceName", "spec.grpcRoute.match"}},
		"a reserved gRPC service":                   {mesh.KindGatewayRoute, `{"grpcRoute":{"match":{"serviceName":"aws.app-mesh.x"},"action":{"target":{"virtualService":{"virtualServiceName":"s"}}}}}`, []string{"spec.grpcRoute.match.serviceName"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, faultsOf(t, c.kind, c.spec), equateEmpty); diff != "" {
				t.Errorf("fields at fault (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsOfNamesAndOwners(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 256)
	for name, c := range map[string]struct {
		object mesh.Object
		want   []string
	}{
		"a name of 255 characters is sound": {&mesh.Mesh{Meta: mesh.Meta{MeshName: "x", Name: long[:2*255]}}, nil},
		"a name of 256 characters":          {&mesh.Mesh{Meta: mesh.Meta{MeshName: "x", Name: long}}, []string{"meshName"}},
		"a name that is missing":            {&mesh.VirtualNode{Meta: mesh.Meta{MeshName: "x"}}, []string{"virtualNodeName"}},
		"a mesh that is missing":            {&mesh.VirtualService{Meta: mesh.Meta{Name: "x"}}, []string{"meshName"}},
		"a route without its router":        {&mesh.Route{Meta: mesh.Meta{MeshName: "x", Name: "x"}}, []string{"spec", "virtualRouterName"}},
		"a gateway route without gateway":   {&mesh.GatewayRoute{Meta: mesh.Meta{MeshName: "x", Name: "x"}}, []string{"spec", "virtualGatewayName"}},
		"an owner that is no account":       {&mesh.Mesh{Meta: mesh.Meta{MeshName: "x", Name: "x", Owner: "12345678901a"}}, []string{"meshOwner"}},
		"a Service of Kubernetes is sound":  {aKubernetesService("x", "", 80), nil},
		"a node that selects pods, without discovery": {&mesh.VirtualNode{Meta: mesh.Meta{MeshName: "x", Name: "x"}, SelectsPods: true, Spec: mesh.VirtualNodeSpec{
			Listeners: []mesh.Listener{{PortMapping: mapping("http/80")}},
		}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var fields []string
			for _, f := range mesh.Validate(c.object) {
				fields = append(fields, f.Field)
			}
			if diff := cmp.Diff(c.want, fields, equateEmpty); diff != "" {
				t.Errorf("fields at fault (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFindingSaysWhatIsWrongAndHowToMendIt(t *testing.T) {
	t.Parallel()
	m := aMesh()
	m.Spec.EgressFilter = &mesh.EgressFilter{Type: "ALLOW"}
	want := []mesh.Finding{{
		Severity: mesh.SeverityError, Reason: mesh.ReasonInvalid, Object: m.Source, Field: "spec.egressFilter.type", Value: "ALLOW",
		Message: `spec.egressFilter.type of mesh "m" is "ALLOW", which is not one of "ALLOW_ALL", "DROP_ALL"`, Mend: `use one of "ALLOW_ALL", "DROP_ALL"`,
	}}
	if diff := cmp.Diff(want, mesh.Validate(m)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRoutesOfARouterAreFoundInItsList(t *testing.T) {
	t.Parallel()
	r := httpRoute("r", "x", "nowhere", "a=1")
	r.Position = 3
	findings := mesh.Validate(r)
	wantFindings(t, findings, "error Invalid VirtualRouter/r spec.routes[3].httpRoute.match.prefix")
	r.Source.Kind = "Route"
	wantFindings(t, mesh.Validate(r), "error Invalid Route/r spec.httpRoute.match.prefix")
}

func TestHugeAndOddValuesAreCut(t *testing.T) {
	t.Parallel()
	for _, odd := range []string{strings.Repeat("x", 10<<20), strings.Repeat("ä", 1<<16), strings.Repeat("\xff", 1<<16), "\x00\u202e", "\xf0\x9f"} {
		n := aNode("a", "http/80")
		n.Name, n.MeshName = odd, odd
		n.Spec.Listeners[0].PortMapping.Protocol = mesh.Protocol(odd)
		n.Spec.ServiceDiscovery.DNS.Hostname = odd
		n.Spec.Backends = aClient("", odd, odd).Spec.Backends
		r := httpRoute(odd, odd, odd, "a=1")
		r.Spec.HTTPRoute.Match.Headers = []mesh.HeaderMatch{{Name: odd, Match: &mesh.ValueMatch{Regex: new("(" + odd)}}}
		all := append(mesh.Validate(n), mesh.Validate(r)...)
		m := newModel(&mesh.Mesh{Meta: mesh.Meta{MeshName: odd, Name: odd}}, n)
		_, _, more := mesh.ViewOf(m, n.Key(), mesh.Profile{})
		for _, f := range append(all, more...) {
			if utf8.RuneCountInString(f.Value) > 80 || len(f.Message) > 5000 || !utf8.ValidString(f.Value+f.Message) {
				t.Errorf("value of %d characters, message of %d bytes, valid: %v", utf8.RuneCountInString(f.Value), len(f.Message), utf8.ValidString(f.Value+f.Message))
			}
		}
		if len(all) == 0 {
			t.Error("no finding")
		}
	}
}
