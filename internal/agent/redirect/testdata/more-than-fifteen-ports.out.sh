# IPv4
iptables-restore --wait --noflush <<'EOF'
*nat
-N APPMESH_EGRESS
-A APPMESH_EGRESS -d 127.0.0.0/8 -j RETURN
-A APPMESH_EGRESS -m owner --uid-owner 1337 -j RETURN
-A APPMESH_EGRESS -p tcp -m multiport --dports 22,2049,3306 -j RETURN
-A APPMESH_EGRESS -p tcp -j REDIRECT --to-ports 15001
-A OUTPUT -p tcp -m addrtype ! --dst-type LOCAL -j APPMESH_EGRESS
-N APPMESH_INGRESS
-A APPMESH_INGRESS -p tcp -m multiport --dports 8001,8002,8003,8004,8005,8006,8007,8008,8009,8010,8011,8012,8013,8014,8015 -j REDIRECT --to-ports 15000
-A APPMESH_INGRESS -p tcp -m multiport --dports 8016,9000 -j REDIRECT --to-ports 15000
-A PREROUTING -p tcp -m addrtype ! --src-type LOCAL -j APPMESH_INGRESS
COMMIT
EOF
