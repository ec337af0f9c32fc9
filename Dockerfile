# SPDX-License-Identifier: Apache-2.0
# Copyright The Tulle Authors
#
# The control plane's image, for those who build with Docker: docker build --build-arg VERSION=v1.20.0 -t ghcr.io/tulle-mesh/tulle:v1.20.0 .
# "make image" makes the same without Docker.
FROM golang:1.26.0-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X github.com/tulle-mesh/tulle/internal/version.version=${VERSION}" -o /out/tulle ./cmd/tulle
RUN mkdir -p /root-files/etc/ssl/certs /root-files/tmp && chmod 1777 /root-files/tmp && \
    cp /etc/ssl/certs/ca-certificates.crt /root-files/etc/ssl/certs/ && \
    printf 'root:x:0:0:root:/root:/bin/false\ntulle:x:65532:65532:tulle:/tmp:/bin/false\n' >/root-files/etc/passwd && \
    printf 'root:x:0:\ntulle:x:65532:\n' >/root-files/etc/group && \
    printf 'passwd: files\ngroup: files\nhosts: files dns\n' >/root-files/etc/nsswitch.conf

FROM scratch
ARG VERSION=unknown
LABEL org.opencontainers.image.title=tulle \
      org.opencontainers.image.version=${VERSION} \
      org.opencontainers.image.source=https://github.com/tulle-mesh/tulle \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /root-files/ /
COPY --from=build /out/tulle /usr/bin/tulle
ENV PATH=/usr/bin
USER 65532
ENTRYPOINT ["/usr/bin/tulle"]
