// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

// Logging says where a proxy writes its access log. Source: App Mesh API, Logging and VirtualGatewayLogging.
type Logging struct {
	AccessLog *AccessLog `json:"accessLog,omitempty"`
}

// AccessLog is a union of which exactly one member is set.
type AccessLog struct {
	File *FileAccessLog `json:"file,omitempty"`
}

// FileAccessLog writes to a file, 1 to 255 characters; "/dev/stdout" is the usual one.
type FileAccessLog struct {
	Path string `json:"path"`
	// Format is nil for Envoy's own.
	Format *LoggingFormat `json:"format,omitempty"`
}

// LoggingFormat is a union of which exactly one member is set.
type LoggingFormat struct {
	// Text is an Envoy format string, 1 to 1000 characters.
	Text string `json:"text,omitempty"`
	// JSON makes one object a line, its keys in this order.
	JSON []JSONFormatRef `json:"json,omitempty"`
}

// JSONFormatRef is one member of a JSON log line, key and value 1 to 100 characters.
type JSONFormatRef struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}
