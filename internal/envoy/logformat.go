// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// The operators of access log formats that Envoy 1.40 knows, by what may stand behind their name. Envoy refuses a whole listener for one that it does not know.
const (
	// bareOperators stand alone.
	bareOperators = `
	ACCESS_LOG_TYPE BYTES_RECEIVED BYTES_RETRANSMITTED BYTES_SENT CONNECTION_ID CONNECTION_TERMINATION_DETAILS CUSTOM_FLAGS DOWNSTREAM_CX_RTT
	DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT DOWNSTREAM_DETECTED_CLOSE_TYPE DOWNSTREAM_DIRECT_LOCAL_ADDRESS
	DOWNSTREAM_DIRECT_LOCAL_ADDRESS_ENDPOINT_ID DOWNSTREAM_DIRECT_LOCAL_PORT DOWNSTREAM_DIRECT_REMOTE_ADDRESS DOWNSTREAM_DIRECT_REMOTE_PORT
	DOWNSTREAM_HANDSHAKE_DURATION DOWNSTREAM_HEADER_BYTES_RECEIVED DOWNSTREAM_HEADER_BYTES_SENT DOWNSTREAM_LOCAL_ADDRESS DOWNSTREAM_LOCAL_ADDRESS_ENDPOINT_ID
	DOWNSTREAM_LOCAL_CLOSE_REASON DOWNSTREAM_LOCAL_DNS_SAN DOWNSTREAM_LOCAL_EMAIL_SAN DOWNSTREAM_LOCAL_IP_SAN DOWNSTREAM_LOCAL_OTHERNAME_SAN DOWNSTREAM_LOCAL_PORT
	DOWNSTREAM_LOCAL_SUBJECT DOWNSTREAM_LOCAL_URI_SAN DOWNSTREAM_PEER_CERT DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1 DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256
	DOWNSTREAM_PEER_CHAIN_SERIALS DOWNSTREAM_PEER_DNS_SAN DOWNSTREAM_PEER_EMAIL_SAN DOWNSTREAM_PEER_FINGERPRINT_1 DOWNSTREAM_PEER_FINGERPRINT_256 DOWNSTREAM_PEER_IP_SAN
	DOWNSTREAM_PEER_ISSUER DOWNSTREAM_PEER_ISSUER_FINGERPRINT_256 DOWNSTREAM_PEER_ISSUER_SERIAL DOWNSTREAM_PEER_OTHERNAME_SAN DOWNSTREAM_PEER_SERIAL
	DOWNSTREAM_PEER_SUBJECT DOWNSTREAM_PEER_URI_SAN DOWNSTREAM_REMOTE_ADDRESS DOWNSTREAM_REMOTE_PORT DOWNSTREAM_TLS_CIPHER DOWNSTREAM_TLS_GROUP
	DOWNSTREAM_TLS_SESSION_ID DOWNSTREAM_TLS_VERSION DOWNSTREAM_TRANSPORT_FAILURE_REASON DOWNSTREAM_WIRE_BYTES_RECEIVED DOWNSTREAM_WIRE_BYTES_SENT DURATION
	FILTER_CHAIN_NAME GRPC_STATUS_NUMBER HOSTNAME LOCAL_REPLY_BODY PROTOCOL REQUESTED_SERVER_NAME REQUEST_DURATION REQUEST_HEADERS_BYTES REQUEST_TX_DURATION
	RESPONSE_CODE RESPONSE_DURATION RESPONSE_FLAGS RESPONSE_FLAGS_LONG RESPONSE_HEADERS_BYTES RESPONSE_TRAILERS_BYTES RESPONSE_TX_DURATION ROUNDTRIP_DURATION ROUTE_NAME
	ROUTE_RESOLUTION_COUNT ROUTE_RESOLUTION_TIME_US SPAN_ID STREAM_ID TLS_JA3_FINGERPRINT TLS_JA4_FINGERPRINT TRACE_ID UNIQUE_ID UPSTREAM_CLUSTER UPSTREAM_CLUSTER_RAW
	UPSTREAM_CONNECTION_ID UPSTREAM_CONNECTION_IDS_ATTEMPTED UPSTREAM_CONNECTION_POOL_READY_DURATION UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED
	UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT UPSTREAM_DETECTED_CLOSE_TYPE UPSTREAM_HEADER_BYTES_RECEIVED UPSTREAM_HEADER_BYTES_SENT UPSTREAM_HOST
	UPSTREAM_HOSTS_ATTEMPTED UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT UPSTREAM_HOST_NAME UPSTREAM_HOST_NAMES_ATTEMPTED UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT
	UPSTREAM_HOST_NAME_WITHOUT_PORT UPSTREAM_LOCAL_ADDRESS UPSTREAM_LOCAL_CLOSE_REASON UPSTREAM_LOCAL_DNS_SAN UPSTREAM_LOCAL_IP_SAN UPSTREAM_LOCAL_PORT
	UPSTREAM_LOCAL_URI_SAN UPSTREAM_PEER_CERT UPSTREAM_PEER_DNS_SAN UPSTREAM_PEER_IP_SAN UPSTREAM_PEER_ISSUER UPSTREAM_PEER_SUBJECT UPSTREAM_PEER_URI_SAN
	UPSTREAM_PROTOCOL UPSTREAM_REMOTE_ADDRESS UPSTREAM_REMOTE_ADDRESS_ENDPOINT_ID UPSTREAM_REMOTE_PORT UPSTREAM_REQUEST_ATTEMPT_COUNT UPSTREAM_SERVER_NAME
	UPSTREAM_TLS_CIPHER UPSTREAM_TLS_GROUP UPSTREAM_TLS_SESSION_ID UPSTREAM_TLS_VERSION UPSTREAM_TRANSPORT_FAILURE_REASON UPSTREAM_WIRE_BYTES_RECEIVED
	UPSTREAM_WIRE_BYTES_SENT VIRTUAL_CLUSTER_NAME`
	// tunedOperators may have an argument.
	tunedOperators = `
	DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT DOWNSTREAM_PEER_CERT_V_END
	DOWNSTREAM_PEER_CERT_V_START DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT EMIT_TIME EMIT_TIME_LOCAL GRPC_STATUS RESPONSE_CODE_DETAILS START_TIME START_TIME_LOCAL
	UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT UPSTREAM_PEER_CERT_V_END UPSTREAM_PEER_CERT_V_START UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT`
	// cutTunedOperators may have an argument, and a length to cut to.
	cutTunedOperators = `PATH QUERY_PARAMS`
	// headerOperators name one header, or two of which the first that is there counts, and may have a length.
	headerOperators = `REQ REQUEST_HEADER RESP RESPONSE_HEADER TRAILER RESPONSE_TRAILER`
	// lookupOperators must have an argument, and may have a length.
	lookupOperators = `DYNAMIC_METADATA ENVIRONMENT FILTER_STATE QUERY_PARAM UPSTREAM_FILTER_STATE`
	// plainLookupOperators must have an argument.
	plainLookupOperators = `CLUSTER_METADATA COALESCE COMMON_DURATION METADATA UPSTREAM_METADATA`
)

// operator is what may stand behind an operator's name.
type operator struct{ argument, required, header, length bool }

// formatRules are what log formats are checked by.
type formatRules struct {
	operators map[string]operator
	// command is one operator at the beginning of a text, header the argument of an operator that names headers.
	command, header *regexp.Regexp
}

var logFormats = sync.OnceValue(func() *formatRules {
	rules := &formatRules{
		operators: map[string]operator{},
		command:   regexp.MustCompile(`^%([A-Z0-9_]+)(?:\(([^\n]*?)\))?(:[0-9]+)?%`),
		header:    regexp.MustCompile(`^[A-Za-z0-9_:-]+(\?[A-Za-z0-9_:-]+)?$`),
	}
	for names, op := range map[string]operator{
		bareOperators:        {},
		tunedOperators:       {argument: true},
		cutTunedOperators:    {argument: true, length: true},
		headerOperators:      {argument: true, required: true, header: true, length: true},
		lookupOperators:      {argument: true, required: true, length: true},
		plainLookupOperators: {argument: true, required: true},
	} {
		for name := range strings.FieldsSeq(names) {
			rules.operators[name] = op
		}
	}
	return rules
})

// checkFormat says what Envoy would refuse in a text with operators such as %REQ(:PATH)%; "%%" is a percent sign.
func checkFormat(text string) error {
	rules := logFormats()
	for {
		i := strings.IndexByte(text, '%')
		if i < 0 {
			return nil
		}
		text = text[i:]
		if strings.HasPrefix(text, "%%") {
			text = text[2:]
			continue
		}
		found := rules.command.FindStringSubmatch(text)
		if found == nil {
			return fmt.Errorf(`%q is no operator; a percent sign is written "%%%%"`, firstLine(text))
		}
		if err := rules.checkOperator(found[0], found[1], found[2], found[3]); err != nil {
			return err
		}
		text = text[len(found[0]):]
	}
}

// checkOperator checks one operator that is written as whole.
func (r *formatRules) checkOperator(whole, name, argument, length string) error {
	op, known := r.operators[name]
	switch {
	case !known:
		return fmt.Errorf("operator %q is unknown to Envoy", whole)
	case argument != "" && !op.argument:
		return fmt.Errorf("operator %q takes no argument", whole)
	case argument == "" && op.required:
		return fmt.Errorf("operator %q lacks its argument", whole)
	case length != "" && !op.length:
		return fmt.Errorf("operator %q takes no length", whole)
	case op.header && !r.header.MatchString(argument):
		return fmt.Errorf("operator %q does not name a header, or two with a question mark between them", whole)
	default:
		return nil
	}
}

// firstLine is the beginning of a text, for messages.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line[:min(len(line), 40)]
}
