/* Whether PENSTOCK_METHOD=off is the last word, so that nothing need be loaded: --observe and
 * --config, which PENSTOCK_OPTIONS names, come after a variable (engine/config_load.cpp). */
#ifndef PENSTOCK_PMPI_SWITCHED_OFF_H
#define PENSTOCK_PMPI_SWITCHED_OFF_H

#include <stddef.h>
#include <string.h>

/* `options` is "METHOD,LOG_DIR", or NULL. */
static inline int names_option(const char* options, const char* name) {
  const size_t n = strlen(name);
  for (const char* at = options; at != NULL && *at != '\0';) {
    const size_t length = strcspn(at, ",");
    if (length == n && strncmp(at, name, n) == 0) return 1;
    at += length + (at[length] == ',');
  }
  return 0;
}

static inline int is_method_off(const char* method, const char* options) {
  if (method == NULL || strcmp(method, "off") != 0) return 0;
  return names_option(options, "METHOD") ||
         (!names_option(options, "OBSERVE") && !names_option(options, "CONFIG"));
}

#endif
