// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The service that the gRPC walkthrough's routes name. Its messages are not part of any route, so plain wrappers do.
const (
	colorService = "color.ColorService"
	getColor     = "/" + colorService + "/GetColor"
	setColor     = "/" + colorService + "/SetColor"
)

// A colorServer keeps one colour.
type colorServer interface {
	get() string
	set(color string) (before string)
}

type keptColor struct {
	mu   sync.Mutex
	name string
}

func (k *keptColor) get() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.name
}

func (k *keptColor) set(color string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.name
	k.name = color
	return before
}

// colorDescription is the service without generated code.
func colorDescription() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: colorService,
		HandlerType: (*colorServer)(nil),
		Methods: []grpc.MethodDesc{
			{MethodName: "GetColor", Handler: func(server any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				if err := decode(new(emptypb.Empty)); err != nil {
					return nil, err
				}
				return wrapperspb.String(server.(colorServer).get()), nil //nolint:forcetypeassert // grpc checks it against HandlerType
			}},
			{MethodName: "SetColor", Handler: func(server any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				color := new(wrapperspb.StringValue)
				if err := decode(color); err != nil {
					return nil, err
				}
				return wrapperspb.String(server.(colorServer).set(color.GetValue())), nil //nolint:forcetypeassert // as above
			}},
		},
	}
}

// serveGRPC keeps the colour COLOR, and says that it is healthy.
func serveGRPC(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", port())
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	server.RegisterService(colorDescription(), &keptColor{name: setting("no color", "COLOR")})
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() {
		<-ctx.Done()
		server.GracefulStop()
	}()
	return server.Serve(listener)
}

// serveGRPCClient turns GET /getColor and POST /setColor into calls. A call that fails is a 404 with what gRPC says, as in the walkthrough.
func serveGRPCClient(ctx context.Context) error {
	connection, err := grpc.NewClient("passthrough:///"+setting("", "COLOR_HOST"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /getColor", func(w http.ResponseWriter, r *http.Request) {
		color := new(wrapperspb.StringValue)
		answer(w, color, connection.Invoke(r.Context(), getColor, new(emptypb.Empty), color))
	})
	mux.HandleFunc("POST /setColor", func(w http.ResponseWriter, r *http.Request) {
		wanted, err := io.ReadAll(io.LimitReader(r.Body, 1<<10))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		before := new(wrapperspb.StringValue)
		answer(w, before, connection.Invoke(r.Context(), setColor, wrapperspb.String(string(wanted)), before))
	})
	return serve(ctx, mux)
}

func answer(w http.ResponseWriter, color *wrapperspb.StringValue, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	_, _ = io.WriteString(w, color.GetValue())
}
