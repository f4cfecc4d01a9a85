// A rank's independent reads of an open file: nobody else takes part, and nobody is asked.
#pragma once

#include "exec/read_page.hpp"
#include "exec/read_pipeline.hpp"

namespace penstock::exec {

class LoneReader {
 public:
  explicit LoneReader(io::ReadableFile& file) : file_(file) {}

  // Local; what the rank wants to find in the file has entered it. One call at a time.
  ReadOutcome read(const ReadRequest& request);
  const ReadSpent& spent() const noexcept { return spent_; }  // REQUIRES nobody in read

 private:
  io::ReadableFile& file_;
  ReadPage page_;  // kept warm
  ReadSpent spent_;
};

}  // namespace penstock::exec
