// Messages as JSON, by reflection; see json.h.
// Thread: pure functions, any.
#include "client/ctl/json.h"

#include <google/protobuf/descriptor.h>

#include <string>

#include "proto/contract/error.h"

namespace memdecay::ctl {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Json = nlohmann::ordered_json;

// PAGE_STATE_GIVEN_UP of PageState → "given_up".
std::string word(const EnumValueDescriptor& value) {
  std::string prefix;
  for (const char c : value.type()->name()) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !prefix.empty()) prefix.push_back('_');
    prefix.push_back(upper ? c : static_cast<char>(c - 'a' + 'A'));
  }
  prefix.push_back('_');
  std::string name = value.name();
  if (name.rfind(prefix, 0) == 0) name.erase(0, prefix.size());
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

Json scalar(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.GetFloat(message, &field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return word(*reflection.GetEnum(message, &field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return to_json(reflection.GetMessage(message, &field));
  }
  return nullptr;
}

Json repeated(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  Json out = Json::array();
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        out.push_back(to_json(reflection.GetRepeatedMessage(message, &field, i)));
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        out.push_back(word(*reflection.GetRepeatedEnum(message, &field, i)));
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        out.push_back(reflection.GetRepeatedUInt32(message, &field, i));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        out.push_back(reflection.GetRepeatedUInt64(message, &field, i));
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        out.push_back(reflection.GetRepeatedString(message, &field, i));
        break;
      default:  // no such field in memdecay.v1
        break;
    }
  }
  return out;
}

}  // namespace

Json to_json(const Message& message) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  Json out = Json::object();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.is_repeated()) {
      out[field.name()] = repeated(message, field);
    } else if (field.has_presence() && !message.GetReflection()->HasField(message, &field)) {
      out[field.name()] = nullptr;
    } else {
      out[field.name()] = scalar(message, field);
    }
  }
  return out;
}

nlohmann::ordered_json to_json(const absl::Status& status) {
  const ErrorDetail detail = error_detail(status);
  return {{"error", std::string(error_name(detail.code))},
          {"asked", detail.asked},
          {"there", detail.there},
          {"todo", detail.todo}};
}

}  // namespace memdecay::ctl
