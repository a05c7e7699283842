/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/shell/shell.h"

#include <string.h>

bool is_steering_variable(const char *assignment)
{
    static const char *const exact[] = {
        "PATH",
        "IFS",
        "ENV",
        "BASH_ENV",
        "SHELL",
        "SHELLOPTS",
        "BASHOPTS",
        "BASH_CMDS",
        "BASH_ALIASES",
        "EXECIGNORE",
        "FPATH",
        "ZDOTDIR",
        "INPUTRC",
        "PS4",
        "PROMPT_COMMAND",
        "CDPATH",
        "PERL5OPT",
        "PERL5LIB",
        "PERLLIB",
        "PERL5DB",
        "RUBYOPT",
        "RUBYLIB",
        "NODE_OPTIONS",
        "NODE_PATH",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "CLASSPATH",
        "PAGER",
        "MANPAGER",
        "LESSOPEN",
        "LESSCLOSE",
        "EDITOR",
        "VISUAL",
        "VIMINIT",
        "EXINIT",
        "BROWSER",
        "MAKEFLAGS",
        "GNUMAKEFLAGS",
        "MAKEFILES",
        "CC",
        "CXX",
        "RUSTFLAGS",
        "GOFLAGS",
        "MAVEN_OPTS",
        "GRADLE_OPTS",
        "GCONV_PATH",
        "LOCPATH",
        "NLSPATH",
        "TERMINFO",
        "HOME",
        "XDG_CONFIG_HOME",
        "SSH_ASKPASS",
        "SUDO_ASKPASS",
        "SUDO_EDITOR",
        "SVN_SSH",
        "PHPRC",
        "PHP_INI_SCAN_DIR",
        "TAR_OPTIONS",
        "RSYNC_RSH",
        "RSYNC_CONNECT_PROG",
        "ZIPOPT",
        "MANOPT",
        "RIPGREP_CONFIG_PATH",
        "WGETRC",
        "APT_CONFIG",
        "PSQLRC",
        "KUBECTL_EXTERNAL_DIFF",
        "HGRCPATH",
        "OPENSSL_CONF",
    };
    static const char *const prefixes[] = {
        "LD_",        "GLIBC_",      "MALLOC_",     "DYLD_",   "PYTHON", "GIT_",
        "BASH_FUNC_", "npm_config_", "NPM_CONFIG_", "CARGO_",  "RUSTC",  "PIP_",
        "LUA_INIT",   "LUA_PATH",    "LUA_CPATH",   "BUNDLE_", "GEM_"};
    size_t n = strcspn(assignment, "=+["); /* also PATH+=:. and PATH[0]=. */

    for (size_t i = 0; i < COUNT(exact); i++)
        if (strlen(exact[i]) == n && memcmp(assignment, exact[i], n) == 0)
            return true;
    for (size_t i = 0; i < COUNT(prefixes); i++)
        if (strncmp(assignment, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}
