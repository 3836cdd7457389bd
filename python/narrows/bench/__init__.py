"""What a packet-hop costs on this machine: workloads, the instructions that gate them, and ns-3 on the same work."""
