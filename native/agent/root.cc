#include "root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace {

// Every root has this folder to mount on, and nothing needs sysfs before the new root is there.
const char kStaging[] = "/sys";
const char kModules[] = "/modules";

std::string shared_folder;

std::string Failure(const std::string& what) { return what + ": " + strerror(errno); }

void MakeFolders(const std::string& path) {
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    mkdir(path.substr(0, end).c_str(), 0755);
  }
  mkdir(path.c_str(), 0755);
}

bool Mount(const char* type, const std::string& source, const std::string& target, unsigned long flags,
           const std::string& options) {
  MakeFolders(target);
  return mount(source.c_str(), target.c_str(), type, flags, options.c_str()) == 0;
}

std::string NinePOptions(const Settings& settings) {
  const auto options = settings.find("9p");
  return options == settings.end() ? "" : options->second;
}

bool MountShared(const Settings& settings, const std::string& path, std::string* error) {
  const bool mounted =
      settings.at("files") == "9p"
          ? Mount("9p", "out", path, 0, "trans=virtio,version=9p2000.L,cache=none,msize=512000")
          : Mount("hostfs", "none", path, 0, path);
  if (!mounted) *error = Failure("the writable folder " + path + " cannot be mounted");
  shared_folder = path;
  return mounted;
}

// The disk with an image of a folder, over that folder, with a layer of memory of its own that takes writes.
// Where it cannot be mounted, the same files are there over 9p.
void MountPackages(const Settings& settings, const std::string& staging, const std::string& root) {
  const auto packages = settings.find("packages");
  if (packages == settings.end()) return;
  const std::string disk = staging + "/packages";
  if (!Mount("ext4", "/dev/vda", disk, MS_RDONLY, "")) return;
  const std::string upper = staging + "/packages-upper", work = staging + "/packages-work";
  MakeFolders(upper);
  MakeFolders(work);
  Mount("overlay", "overlay", root + packages->second, 0,
        "lowerdir=" + disk + ",upperdir=" + upper + ",workdir=" + work + ",redirect_dir=on");
}

void MountKernelFileSystems(const std::string& root) {
  Mount("proc", "proc", root + "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
  Mount("sysfs", "sysfs", root + "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
  Mount("devtmpfs", "devtmpfs", root + "/dev", MS_NOSUID, "");
  Mount("tmpfs", "shm", root + "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777");
  Mount("devpts", "devpts", root + "/dev/pts", MS_NOSUID | MS_NOEXEC, "mode=620,ptmxmode=666");
  Mount("debugfs", "debugfs", root + "/sys/kernel/debug", 0, "");
  Mount("configfs", "configfs", root + "/sys/kernel/config", 0, "");
  (void)!symlink("/proc/self/fd", (root + "/dev/fd").c_str());
  (void)!symlink("/proc/self/fd/0", (root + "/dev/stdin").c_str());
  (void)!symlink("/proc/self/fd/1", (root + "/dev/stdout").c_str());
  (void)!symlink("/proc/self/fd/2", (root + "/dev/stderr").c_str());
}

void RaiseLimits() {
  const rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_MEMLOCK, &unlimited);
  const rlimit files = {65536, 65536};
  setrlimit(RLIMIT_NOFILE, &files);
}

bool LoadModule(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const long result = syscall(SYS_finit_module, fd, "", 0);
  close(fd);
  return result == 0 || errno == EEXIST;
}

}  // namespace

void MountEarly() {
  Mount("proc", "proc", "/proc", 0, "");
  Mount("devtmpfs", "devtmpfs", "/dev", 0, "");
}

bool LoadModules(std::string* error) {
  DIR* folder = opendir(kModules);
  if (folder == nullptr) return true;
  std::vector<std::string> names;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') names.push_back(entry->d_name);
  }
  closedir(folder);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (!LoadModule(std::string(kModules) + "/" + name)) {
      *error = Failure("the kernel does not take its module " + name);
      return false;
    }
  }
  return true;
}

bool EnterRoot(const Settings& settings, std::string* error) {
  const std::string staging = kStaging;
  const std::string root = staging + "/root";
  if (!Mount("tmpfs", "tmpfs", staging, 0, "mode=755")) {
    *error = Failure("no memory file system");
    return false;
  }
  std::string lower = "/";
  if (settings.at("files") == "9p") {
    lower = staging + "/host";
    if (!Mount("9p", "host", lower, MS_RDONLY, NinePOptions(settings))) {
      *error = Failure("the host's files cannot be mounted (9p)");
      return false;
    }
  }
  MakeFolders(staging + "/upper");
  MakeFolders(staging + "/work");
  const std::string layers =
      "lowerdir=" + lower + ",upperdir=" + staging + "/upper,workdir=" + staging + "/work,redirect_dir=on";
  if (!Mount("overlay", "overlay", root, 0, layers)) {
    *error = Failure("no overlay over the host's files");
    return false;
  }
  MountPackages(settings, staging, root);
  MountKernelFileSystems(root);
  if (chdir(root.c_str()) != 0 || mount(".", "/", nullptr, MS_MOVE, nullptr) != 0 || chroot(".") != 0 ||
      chdir("/") != 0) {
    *error = Failure("the new root cannot be entered");
    return false;
  }
  RaiseLimits();
  const auto hostname = settings.find("hostname");
  if (hostname != settings.end()) (void)!sethostname(hostname->second.data(), hostname->second.size());
  const auto out = settings.find("out");
  return out == settings.end() || MountShared(settings, out->second, error);
}

void SyncSharedFolders() {
  if (shared_folder.empty()) return;
  const int fd = open(shared_folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  syncfs(fd);
  close(fd);
}
