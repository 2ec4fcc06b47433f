{
  "target_defaults": {
    "cflags_cc!": ["-fno-rtti", "-fno-exceptions", "-std=gnu++17"],
    "cflags_cc": ["-std=c++20", "-fno-exceptions", "-Wall", "-Wextra", "-Wshadow", "-fvisibility=hidden"]
  },
  "targets": [
    {
      "target_name": "node_rdma",
      "sources": ["<!@(node scripts/native-sources.cjs native --unity)"],
      "include_dirs": ["native"],
      "cflags_cc": ["-isystem", "<!(node -p \"path.resolve(require('node-addon-api').include_dir)\")"],
      "defines": [
        "NAPI_VERSION=8",
        "NAPI_DISABLE_CPP_EXCEPTIONS",
        "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"
      ],
      "libraries": ["-libverbs", "-lrdmacm"]
    },
    {
      "target_name": "rxe_agent",
      "type": "executable",
      "sources": ["<!@(node scripts/native-sources.cjs agent --unity)"],
      "cflags_cc": ["-fno-rtti"],
      "ldflags": ["-static"]
    }
  ]
}
